"""Databases as a whole: upgrade, back up, restore, check. Behind `orthobandit db`."""

from orthobandit.service.admin.check import Finding, check
from orthobandit.service.admin.database import upgrade
from orthobandit.service.admin.read import Kept
from orthobandit.service.admin.restore import restore
from orthobandit.service.admin.write import back_up

__all__ = ["Finding", "Kept", "back_up", "check", "restore", "upgrade"]
