"""The errors a user meets. Each message is one line that says what is wrong and what cures it.

No module of this project raises anything else on purpose; the console script and the assets print
these without a stack trace.
"""

from typing import ClassVar


class BackfillError(Exception):
    """Base of all errors that are the user's to cure.

    Attributes:
        exit_code: of a command that it ends: 1 for an outcome, 2 where what was asked can't be.
    """

    exit_code: ClassVar = 1


class SettingsError(BackfillError):
    """A setting or an argument has no usable value."""

    exit_code = 2


class DeclarationError(BackfillError, ValueError):
    """A table, what lands, or an asset is declared as it can't be."""


class SparkUnavailableError(BackfillError):
    """No Spark session can be had: Java, the Delta jars or the remote server is missing."""


class EngineError(BackfillError):
    """The chosen engine can't do what is asked; another one can."""


class PartitionRangeError(BackfillError):
    """The partitions asked for are none: the range is reversed, or no key was given."""

    exit_code = 2


class LandingError(BackfillError):
    """The landing zone lacks what the partitions need, or changed while it was read."""


class LandingNotFoundError(LandingError):
    """The landing zone, or a data set in it, isn't there at all."""


class TableError(BackfillError):
    """A Delta table is missing, or isn't what its declaration says."""


class UnknownTableError(TableError):
    """No table, or no version of one, is declared by that name."""

    exit_code = 2


class CertificateError(BackfillError):
    """There is no certificate of a run, or it can't be read."""


class HistoryError(BackfillError):
    """A run is not in the history of a table."""


class UnknownRunError(HistoryError):
    """No run, backfill or rehearsal is known by that id, or several are."""

    exit_code = 2


class RollbackError(BackfillError):
    """Partitions can't be taken back to an earlier version, or not without losing more."""


class RehearsalError(BackfillError):
    """There is no such rehearsal, or what was rehearsed can't be applied."""


class PromotionError(BackfillError):
    """A version of a table can't be served, or can't be retired."""


class ProtectedError(BackfillError):
    """Partitions are protected, and nobody has said why they are to be written all the same."""


class CodeChangedError(BackfillError):
    """A run of a backfill would publish by other code or options than the runs before it."""


class TableLockedError(BackfillError):
    """Another process holds a table's lock for longer than is sensible."""


class GoldenError(BackfillError):
    """A golden data set can't be compared with: it is unreadable, or lacks what that takes."""

    exit_code = 2


class FilterError(BackfillError):
    """A row filter is unreadable, or uses what isn't allowed."""

    exit_code = 2
