"""How tests are given to the workers of pytest-xdist."""

from contextlib import suppress

from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]
from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]

# Modules whose tests share what is started or downloaded once: one worker takes all of them.
TOGETHER = (
    "tests/agents/test_offline.py",
    "tests/cluster/test_any_node.py",
    "tests/cluster/test_sessions_anywhere.py",
    "tests/conformance/",
    "tests/contract/",
    "tests/docs/",
    "tests/examples/test_programs.py",
    "tests/logins/test_attacks.py",
    "tests/logins/test_bad_input.py",
    "tests/logins/test_published_clients.py",
    "tests/mcp_endpoint/test_real_clients.py",
    "tests/packages/",
    "tests/real/",
    "tests/test_readme.py",
)

# Modules whose tests take half a second of processor time each, or more: `scripts/test fast` leaves them out.
DEAR = (
    "tests/agents/test_agents_bad_input.py",
    "tests/agents/test_citations.py",
    "tests/agents/test_connector_agents_delegation.py",
    "tests/agents/test_exposure_code.py",
    "tests/agents/test_exposure_rights.py",
    "tests/agents/test_historic_bugs.py",
    "tests/agents/test_management_is_a_change.py",
    "tests/agents/test_prompts.py",
    "tests/agents/test_two_tenants.py",
    "tests/api/test_conversations_over_rest.py",
    "tests/api/test_declared_answers.py",
    "tests/api/test_people_over_rest.py",
    "tests/api/test_route_groups.py",
    "tests/api/test_who_changes_what.py",
    "tests/bench/",
    "tests/boxes/test_life_of_boxes.py",
    "tests/budgets/test_usage_blocks.py",
    "tests/cli/test_boxes_by_command.py",
    "tests/cli/test_call_at_a_terminal.py",
    "tests/cli/test_cli_imports.py",
    "tests/cli/test_cli_life.py",
    "tests/cli/test_cli_threads.py",
    "tests/cli/test_init.py",
    "tests/cli/test_people_by_command.py",
    "tests/cli/test_resources_by_command.py",
    "tests/cli/test_settings_by_command.py",
    "tests/console/test_signing_in.py",
    "tests/contract/test_old_home.py",
    "tests/credentials/test_cli_credentials.py",
    "tests/docs/test_site.py",
    "tests/examples/test_chat.py",
    "tests/examples/test_email.py",
    "tests/examples/test_programs.py",
    "tests/mcp_endpoint/test_mcp_asking.py",
    "tests/mcp_endpoint/test_mcp_bundles.py",
    "tests/mcp_endpoint/test_mcp_queries.py",
    "tests/openapi/test_openapi_life.py",
    "tests/runs/test_cancelled_runs.py",
    "tests/runs/test_failing_models.py",
    "tests/runs/test_repeated_calls.py",
    "tests/runs/test_summaries.py",
    "tests/safety/test_guarded_reach.py",
)


class ByTestOrModule(LoadScopeScheduling):
    """A worker takes the next test as soon as it is free."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0] if nodeid.startswith(TOGETHER) else nodeid

    def schedule(self) -> None:
        super().schedule()
        # A worker begins when it knows the test after its next: one that replaces another gets two, too.
        for node in self.nodes:
            self._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        # A worker may have ended before its last report is read: `remove_node` takes back what it was given.
        with suppress(OSError):
            super()._assign_work_unit(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """The test that ended its worker has failed, and is not run again; the others of that worker are."""
        workload = self.assigned_work.pop(node)
        left = [name for unit in workload.values() for name, is_done in unit.items() if not is_done]
        for name in left[1:]:
            self.workqueue.setdefault(self._split_scope(name), {})[name] = False
        for other in self.nodes:
            self._reschedule(other)
        return left[0] if left else None
