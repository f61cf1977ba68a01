"""The pages of the dashboard, one file a subject."""

from orthobandit.service.dashboard.routes.creating import router as creating
from orthobandit.service.dashboard.routes.listing import router as listing
from orthobandit.service.dashboard.routes.login import root
from orthobandit.service.dashboard.routes.login import router as login
from orthobandit.service.dashboard.routes.showing import router as showing

ROUTERS = (root, login, listing, creating, showing)

__all__ = ["ROUTERS"]
