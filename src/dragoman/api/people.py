"""People, their keys and preferences: `/api/me`, `/api/workspaces`, `/api/users`, `/api/keys`."""

from fastapi import APIRouter

from dragoman.api.requests import PROBLEMS

routes = APIRouter(prefix="/api", tags=["people"], responses=PROBLEMS)
