"""Work on whole databases: upgrade, back up, restore, check (`orthobandit db`)."""

from orthobandit.service.admin.backup import Kept, back_up, restore
from orthobandit.service.admin.database import Finding, check, upgrade

__all__ = ["Finding", "Kept", "back_up", "check", "restore", "upgrade"]
