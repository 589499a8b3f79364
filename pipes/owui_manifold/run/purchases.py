"""What the money of responses bought: reasoning, answers, searches and the like.

The parts are differences of prices: what the same responses would have cost without the
part. So tiers, long inputs, regions and an administrator's prices are all in them.
"""

from collections.abc import Sequence

from openai_responses.items import (
    Item,
    container_ids,
    is_billed_search,
    is_image_call,
    maker_of,
)
from openai_responses.models.usage import Usage, count_searches
from owui_manifold.prepare.request import Prepared
from shells.administration import MILLIONTHS, Purchases


def itemize(
    prepared: Prepared,
    usages: Sequence[Usage],
    output: Sequence[Item],
    cost: float | None,
) -> Purchases:
    """Return what responses with this output bought for their `cost`.

    Counts are there without prices, too. Nothing is itemized if the price of a token is
    not known.
    """
    # Without what the server itself says of the cost: that cannot be taken apart.
    priced = [usage._replace(cost=None) for usage in usages]
    in_files = [item for item in output if maker_of(item).type == "file_search"]
    searches = [*in_files, *filter(is_billed_search, output)]
    images = [item for item in output if is_image_call(item)]
    containers = [item for item in output if container_ids([item])]
    reasoning = sum(min(usage.reasoning, usage.output) for usage in usages)
    bought = Purchases(
        input=sum(usage.input for usage in usages),
        cache_writes=sum(usage.cache_writes for usage in usages),
        reasoning=reasoning,
        answers=sum(usage.output for usage in usages) - reasoning,
        searches=len(in_files) + count_searches(usages, output),
        images=len(images),
        containers=len(container_ids(containers)),
    )
    call = prepared.call
    if call.caller.task:
        bought = bought._replace(tasks=len(usages), task_money=_millionths(cost))
    elif call.agent:
        bought = bought._replace(agents=len(usages), agent_money=_millionths(cost))
    whole = prepared.cost_of(priced, output)
    if whole is None:
        return bought

    def money(usages: Sequence[Usage], output: Sequence[Item] = ()) -> int:
        cost = prepared.cost_of(usages, output)
        return _millionths(cost.dollars if cost else None)

    all_parts = money(priced)
    silent = money([usage._replace(output=0) for usage in priced])
    answers_alone = money(
        [
            usage._replace(output=max(0, usage.output - given.reasoning))
            for usage, given in zip(priced, usages, strict=True)
        ]
    )
    uncached = money([usage._replace(cached=0, cache_writes=0) for usage in priced])
    return bought._replace(
        itemized=len(usages),
        itemized_money=_millionths(whole.dollars),
        saved=uncached - all_parts,
        reasoning_money=all_parts - answers_alone,
        answer_money=answers_alone - silent,
        search_money=money(
            [Usage(searches=usage.searches) for usage in usages], searches
        ),
        image_money=money([Usage(images=usage.images) for usage in usages], images),
        container_money=money((), containers),
    )


def _millionths(dollars: float | None) -> int:
    return round((dollars or 0) * MILLIONTHS)
