"""The codes of a used up quota, as the API names them."""

QUOTA_CODES = (
    "credit_balance_exhausted",
    "insufficient_quota",
    "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "project_spend_limit_exceeded",
    "project_usage_limit_exceeded",
)
