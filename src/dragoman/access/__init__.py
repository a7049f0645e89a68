"""Who may see and call what, and how much at once."""

from dragoman.access.approvals import Approvals as Approvals
from dragoman.access.budgets import Budgets as Budgets
from dragoman.access.limits import Limits as Limits
from dragoman.access.rules import Access as Access
