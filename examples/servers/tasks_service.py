"""A sample service for tasks with due dates: plain HTTP, an OpenAPI document, state in `DIR/tasks.json`.

python tasks_service.py --data DIR --port 0 --port-file PORT
"""

import argparse
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

from account import ME, person
from listening import serve
from state import Document, State, add_data_option, weekday

Status = Literal["open", "done"]
Title = Annotated[str, Field(min_length=1, max_length=200, description="what is to be done")]


class NewTask(BaseModel):
    title: Title
    assignee: Annotated[str, Field(description="a login; 'me' is whose account this is")] = "me"
    due: Annotated[date | None, Field(description="the last day for it")] = None
    notes: str = ""


class TaskChange(BaseModel):
    """What is left out stays as it is."""

    title: Title | None = None
    assignee: str | None = None
    due: date | None = None
    notes: str | None = None
    status: Status | None = None


class Task(BaseModel):
    id: int
    title: str
    assignee: str
    due: date | None
    notes: str
    status: Status


class Tasks(BaseModel):
    tasks: list[Task]
    count: int
    more: bool


def build_app(state: State) -> FastAPI:
    app = FastAPI(
        title="Sample tasks",
        version="1.0.0",
        description="Tasks of a team: what is to be done, by whom, until when.",
        docs_url=None,
        redoc_url=None,
    )
    _add_reading(app, state)
    _add_changing(app, state)
    return app


def _add_reading(app: FastAPI, state: State) -> None:
    @app.get("/tasks", operation_id="list_tasks", summary="List tasks")
    def list_tasks(
        assignee: Annotated[
            str | None, Query(description="a login such as octocat; 'me' is whose account this is")
        ] = None,
        status: Annotated[Literal["open", "done", "all"], Query(description="which ones")] = "open",
        due_after: Annotated[date | None, Query(description="due on this day or later")] = None,
        due_before: Annotated[date | None, Query(description="due before this day")] = None,
        text: Annotated[str | None, Query(description="part of the title or the notes")] = None,
        limit: Annotated[int, Query(ge=1, le=100, description="most tasks to return")] = 20,
    ) -> Tasks:
        """List tasks, those due first in front; every filter is optional and all that are given must hold."""
        found = [
            task
            for task in (Task(**fields) for fields in state.read()["tasks"])
            if (assignee is None or person(assignee) == task.assignee)
            and status in ("all", task.status)
            and (due_after is None or (task.due is not None and task.due >= due_after))
            and (due_before is None or (task.due is not None and task.due < due_before))
            and (text is None or text.lower() in f"{task.title}\n{task.notes}".lower())
        ]
        found.sort(key=lambda task: (task.due or date.max, task.id))
        return Tasks(tasks=found[:limit], count=len(found[:limit]), more=len(found) > limit)

    @app.get("/tasks/{id}", operation_id="get_task", summary="Get a task")
    def get_task(id: int) -> Task:
        """Read one task."""
        return Task(**_fields(state.read(), id))

    _ = list_tasks, get_task  # the app holds them


def _add_changing(app: FastAPI, state: State) -> None:
    @app.post("/tasks", operation_id="create_task", summary="Create a task", status_code=201)
    def create_task(task: NewTask) -> Task:
        """Write down a new task for somebody."""
        with state.changing() as document:
            number = document["last_id"] = document["last_id"] + 1
            facts: dict[str, Any] = {**task.model_dump(), "assignee": person(task.assignee)}
            new = Task(id=number, status="open", **facts)
            document["tasks"].append(new.model_dump(mode="json"))
        return new

    @app.patch("/tasks/{id}", operation_id="update_task", summary="Change a task")
    def update_task(id: int, change: TaskChange) -> Task:
        """Change a task, or mark it done; what is left out stays as it is."""
        with state.changing() as document:
            fields = _fields(document, id)
            fields |= _changed(change)
        return Task(**fields)

    @app.delete("/tasks/{id}", operation_id="delete_task", summary="Delete a task", status_code=204)
    def delete_task(id: int) -> None:
        """Delete a task for good."""
        with state.changing() as document:
            document["tasks"].remove(_fields(document, id))

    _ = create_task, update_task, delete_task  # the app holds them


def _changed(change: TaskChange) -> dict[str, Any]:
    """Only a due date can be taken away; an explicit null elsewhere means nothing."""
    given: dict[str, Any] = change.model_dump(mode="json", exclude_unset=True)
    kept = {name: value for name, value in given.items() if value is not None or name == "due"}
    return kept | ({"assignee": person(change.assignee)} if change.assignee is not None else {})


def _fields(document: Document, number: int) -> Document:
    for fields in document["tasks"]:
        if fields["id"] == number:
            return fields
    raise HTTPException(404, f"there is no task {number}; GET /tasks lists those there are")


def seeded() -> Document:
    lines: list[tuple[str, str, str | None, str, Status]] = [
        ("Prepare the demo for Friday", ME, weekday(4), "Ten minutes, with the new export.", "open"),
        ("Fill in the budget table", ME, weekday(3), "Giulia waits for it.", "open"),
        ("Book the train to Lyon", ME, weekday(9), "", "open"),
        ("Answer the security questionnaire", "mira", weekday(4), "Forty questions.", "open"),
        ("Renew the certificate of the storefront", "tomas", weekday(-3), "It ends on the last of the month.",
         "open"),
        ("Plant the office trees", "sofia", None, "", "open"),
        ("Send the notes of the review", ME, weekday(-5), "", "done"),
    ]  # fmt: skip
    tasks = [
        {"id": number, "title": title, "assignee": who, "due": due, "notes": notes, "status": status}
        for number, (title, who, due, notes, status) in enumerate(lines, 1)
    ]
    return {"tasks": tasks, "last_id": len(tasks)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tasks_service.py", description="A sample service for tasks.")
    add_data_option(parser)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, metavar="FILE", help="written once it listens")
    options = parser.parse_args()
    serve(build_app(State(options.data / "tasks.json", seeded)), options.port, options.port_file)


if __name__ == "__main__":
    main()
