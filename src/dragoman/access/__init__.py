"""Who may see and call what, and how much at once."""

from dragoman.access.approvals import ApprovalGate as ApprovalGate
from dragoman.access.budgets import Budgets as Budgets
from dragoman.access.limits import ConcurrencyLimits as ConcurrencyLimits
from dragoman.access.rules import AccessRules as AccessRules
from dragoman.access.shared_limits import SharedLimits as SharedLimits
from dragoman.access.threads import ActiveConnectors as ActiveConnectors
