"""`/api/approvals`: questions to people, and their answers."""

from fastapi import APIRouter

from dragoman.api.requests import PROBLEMS

routes = APIRouter(prefix="/api", tags=["approvals"], responses=PROBLEMS)
