"""`/api/credentials`: what users bring for connectors, and the way back from an authorisation."""

from fastapi import APIRouter

from dragoman.api.requests import PROBLEMS

routes = APIRouter(prefix="/api", tags=["credentials"], responses=PROBLEMS)
