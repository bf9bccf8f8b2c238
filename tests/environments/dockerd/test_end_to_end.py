"""What is tested on podman from end to end, on Docker's own daemon: the tests are the same."""

from __future__ import annotations

import pytest

from tests.benchmarks.harbor.test_phases import (
    test_an_allowlist_lets_the_agent_reach_the_listed_host_and_no_other,
    test_each_step_has_the_network_that_it_declares,
    test_what_the_agent_may_reach_may_be_closed_to_the_tests,
)
from tests.environments.docker.test_builds import (
    test_a_cancelled_build_leaves_nothing,
    test_a_failed_build_shows_its_last_lines_and_leaves_no_image,
    test_a_step_that_never_ends_is_ended_with_its_build,
    test_an_image_is_built_once_for_all_who_ask,
)
from tests.environments.docker.test_leaks import (
    test_an_open_that_is_cancelled_at_any_point_leaves_no_container,
    test_what_a_killed_driver_left_is_found_and_ended_by_its_token_alone,
)

__all__ = [
    "test_a_cancelled_build_leaves_nothing",
    "test_a_failed_build_shows_its_last_lines_and_leaves_no_image",
    "test_a_step_that_never_ends_is_ended_with_its_build",
    "test_an_allowlist_lets_the_agent_reach_the_listed_host_and_no_other",
    "test_an_image_is_built_once_for_all_who_ask",
    "test_an_open_that_is_cancelled_at_any_point_leaves_no_container",
    "test_each_step_has_the_network_that_it_declares",
    "test_what_a_killed_driver_left_is_found_and_ended_by_its_token_alone",
    "test_what_the_agent_may_reach_may_be_closed_to_the_tests",
]

pytestmark = pytest.mark.integration
