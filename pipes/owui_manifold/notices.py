"""What a person is told above an answer, before it begins."""

from openai_responses.clock import utc_today
from openai_responses.retirement import retirement_notice
from owui_manifold.job import Job, model_of
from owui_manifold.legacy import legacy_notices
from owui_manifold.permitted import permission_complaint
from owui_manifold.remote_notices import remote_notices
from owui_manifold.wishes import OTHER_VERSION, is_of_another_version


async def notices_of(job: Job) -> list[str]:
    """Return the sentences to show; tasks and later rounds of tools have none."""
    asked = job.asked
    if asked.caller.task or job.before:
        return []
    retirement = retirement_notice(model_of(asked), utc_today())
    return [
        *job.notices,
        *([retirement] if retirement else []),
        *remote_notices(job),
        *await legacy_notices(asked),
        *(_mistakes(job) if asked.caller.is_admin else []),
    ]


def _mistakes(job: Job) -> list[str]:
    """Return what an administrator has to put right."""
    asked = job.asked
    other = is_of_another_version(asked.around.metadata)
    found = [permission_complaint(asked.valves), OTHER_VERSION if other else ""]
    return [sentence for sentence in found if sentence]
