"""Databases as a whole: upgrade, back up, restore, check. Behind `orthobandit db`."""

from orthobandit.service.backup.check import Finding, check
from orthobandit.service.backup.database import upgrade
from orthobandit.service.backup.read import Kept
from orthobandit.service.backup.restore import restore
from orthobandit.service.backup.write import back_up

__all__ = ["Finding", "Kept", "back_up", "check", "restore", "upgrade"]
