"""Work on whole databases: upgrade, back up, restore, check (`orthobandit db`)."""

from orthobandit.service.admin.backup import Kept, back_up, restore
from orthobandit.service.admin.check import Finding, check
from orthobandit.service.admin.database import upgrade

__all__ = ["Finding", "Kept", "back_up", "check", "restore", "upgrade"]
