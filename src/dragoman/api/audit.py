"""`/api/audit`: who did what to which."""

from fastapi import APIRouter

from dragoman.api.requests import PROBLEMS

routes = APIRouter(prefix="/api", tags=["audit"], responses=PROBLEMS)
