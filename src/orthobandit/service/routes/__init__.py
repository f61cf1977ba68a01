"""What can be asked of the service, one file a subject."""

from orthobandit.service.routes.arms import router as arms
from orthobandit.service.routes.asking import router as asking
from orthobandit.service.routes.edge import router as edge
from orthobandit.service.routes.edge import script
from orthobandit.service.routes.experiments import router as experiments
from orthobandit.service.routes.flags import router as flags
from orthobandit.service.routes.flags import tracking
from orthobandit.service.routes.health import router as health
from orthobandit.service.routes.metrics import router as metrics
from orthobandit.service.routes.reading import router as reading
from orthobandit.service.routes.tokens import router as tokens
from orthobandit.service.routes.webhooks import router as webhooks

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
