"""What can be asked of the service, one file a subject."""

from orthobandit.service.api.arms import router as arms
from orthobandit.service.api.assignments import router as asking
from orthobandit.service.api.edge import router as edge
from orthobandit.service.api.edge import script
from orthobandit.service.api.experiments import router as experiments
from orthobandit.service.api.flags import router as flags
from orthobandit.service.api.flags import tracking
from orthobandit.service.api.health import router as health
from orthobandit.service.api.metrics import router as metrics
from orthobandit.service.api.reports import router as reading
from orthobandit.service.api.tokens import router as tokens
from orthobandit.service.api.webhooks import router as webhooks

ROUTERS = (
    health,
    metrics,
    experiments,
    asking,
    edge,
    script,
    reading,
    arms,
    tokens,
    webhooks,
    flags,
    tracking,
)

__all__ = ["ROUTERS"]
