"""What a person would do about a well-known fault, as an order."""

from __future__ import annotations

SCHEDULE = "free or add what the scheduler misses, or ask for less of it"
IMAGE = "check the image's name and tag, and the credentials for its registry"
MOUNT = "check that the volume, secret or config map exists and can be attached"
QUOTA = "raise the quota, or use less of it"
PROBE = "check that the probe's path, port and time-out fit the program"
MEMORY = "find what fills the memory, or raise the memory limit"
READ_FAILED_PODS = "read the logs of the job's failed pods"
NODE = "check the node itself, and move its workloads away"
