"""The pages of the dashboard, one file a subject."""

from orthobandit.service.dashboard.routes.acting import router as acting
from orthobandit.service.dashboard.routes.creating import router as creating
from orthobandit.service.dashboard.routes.downloads import router as downloads
from orthobandit.service.dashboard.routes.listing import router as listing
from orthobandit.service.dashboard.routes.login import others, root
from orthobandit.service.dashboard.routes.login import router as login
from orthobandit.service.dashboard.routes.showing import router as showing
from orthobandit.service.dashboard.routes.trails import router as trails

ROUTERS = (root, login, listing, creating, showing, acting, trails, downloads, others)

__all__ = ["ROUTERS"]
