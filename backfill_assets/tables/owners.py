"""Who answers for the samples."""

OWNERS = ("team:data-platform",)
