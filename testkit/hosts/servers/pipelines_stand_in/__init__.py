"""A stand-in for the Pipelines server, which no package index offers.

Written from what the real one was seen to do, defects included, on the same versions
of FastAPI, uvicorn, pydantic and aiohttp. `PIPELINES_SERVER` names a checkout of the
real one, to be started in its place.
"""
