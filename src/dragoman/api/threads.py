"""`/api/threads`: conversations, and the connectors that are active in them."""

from fastapi import APIRouter

from dragoman.api.requests import PROBLEMS

routes = APIRouter(prefix="/api", tags=["threads"], responses=PROBLEMS)
