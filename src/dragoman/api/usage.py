"""`/api/usage`: what was used, and what may still be."""

from fastapi import APIRouter

from dragoman.api.requests import PROBLEMS

routes = APIRouter(prefix="/api", tags=["usage"], responses=PROBLEMS)
