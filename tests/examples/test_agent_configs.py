"""The sample agents are read as any `agent_configs/` folder, and use connectors that the samples are."""

from dragoman.examples import examples
from dragoman.formats.import_files import files_in, read_file

FOLDER = examples() / "agent_configs"


def test_the_sample_agents_use_the_sample_connectors() -> None:
    plans = [read_file(path) for path in files_in(FOLDER)]
    agents = {agent.name: agent.connectors for plan in plans for agent in plan.agents}
    assert agents == {
        "mailer": ("email",),
        "planner": ("tasks", "tracker"),
        "triager": ("chat", "tracker"),
    }
    assert not any(plan.problems or plan.connectors for plan in plans)
