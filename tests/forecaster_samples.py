"""Models for tests of forecasters."""


class OnlineMean:
    """An online model that predicts the mean of what it saw."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def predict_one(self, _):
        return self.total / self.count if self.count else None

    def learn_one(self, _, y):
        self.total, self.count = self.total + y, self.count + 1
