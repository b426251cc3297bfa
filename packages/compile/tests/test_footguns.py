"""What recording systems are known to get wrong, and the tests that show what happens here."""

import ast
from pathlib import Path

import pytest

#: By footgun: the tests, by file.
FOOTGUNS = {
    "constants frozen": {
        "test_known_traps": "test_a_number_as_an_argument_is_not_frozen test_a_global_is_not_frozen test_attributes_of_classes_are_not_frozen "
        "test_a_variable_of_an_enclosing_function_is_not_frozen test_an_entry_of_a_list_is_not_frozen "
        "test_a_number_that_differs_between_recordings_is_refused test_a_tensor_of_the_host_that_differs_is_refused",
        "test_read_state": "test_defaults_of_the_function_and_of_others test_variables_of_the_environment test_functions_with_a_cache",
        "test_python_state": "test_classes_registered_with_abstract_ones test_the_context_of_decimal test_slots_of_pythons_own_classes",
    },
    "branches frozen": {
        "test_known_traps": "test_branches_on_values_are_refused test_branches_on_shapes_have_a_program_each "
        "test_rare_branches_on_random_numbers_are_not_frozen",
    },
    "outputs overwritten": {
        "test_known_traps": "test_results_are_not_overwritten test_results_that_share_memory",
        "test_training": "test_gradients_of_a_replay_are_new_tensors",
    },
    "schedules of the learning rate ignored": {
        "test_training": "test_schedules_of_the_learning_rate",
        "test_state": "test_a_schedule_inside_the_step_is_refused test_a_schedule_of_steps_that_change_nothing_at_first",
    },
    "aliasing": {
        "test_known_traps": "test_arguments_that_are_one_tensor_are_told_from_two test_a_parameter_as_an_argument",
        "test_histories": "test_an_argument_given_twice",
    },
    "in-place on inputs": {
        "test_known_traps": "test_arguments_changed_in_place test_arguments_whose_form_the_function_changes_are_refused",
        "test_histories": "test_an_argument_that_changes_in_place_runs_as_written",
    },
    "views of inputs": {
        "test_known_traps": "test_arguments_that_are_views_of_one_tensor test_results_that_are_arguments_or_views_of_them "
        "test_views_of_an_argument_that_begins_elsewhere",
    },
    "parameters replaced": {
        "test_state": "test_changes_of_a_module_are_seen test_frozen_parameters_are_seen",
        "test_training": "test_a_loaded_state_dict_is_used test_a_parameter_group_that_is_added_is_stepped",
    },
    "hooks added later": {
        "test_state": "test_changes_of_a_module_are_seen test_a_hook_of_all_modules_is_seen test_a_hook_of_a_parameter_is_seen "
        "test_hooks_of_an_optimizer_are_called",
        "test_modules": "test_new_hooks_of_parameters_are_called",
        "test_units": "test_hooks_are_called",
    },
    "mode switches": {
        "test_state": "test_switching_between_training_and_evaluation test_grad_mode_is_seen test_inference_mode "
        "test_autocast_outside_and_inside test_attention_of_several_dtypes_under_autocast test_the_default_dtype_is_seen",
        "test_modules": "test_training_and_evaluation_in_turn",
    },
    "random state": {
        "test_state": "test_random_numbers_go_on_as_in_ordinary_calls test_a_seed_that_is_set_inside_is_refused",
        "test_known_traps": "test_numpys_random_numbers_are_refused",
    },
    "number of threads changed": {
        "test_state": "test_the_number_of_threads_may_change",
        "test_read_state": "test_threads_and_seeds_that_code_reads",
    },
    "exceptions in the middle": {"test_state": "test_exceptions_in_the_middle test_exceptions_of_the_function"},
    "nested compile": {
        "test_state": "test_nested_compiled_functions",
        "test_read_state": "test_a_compiled_function_inside",
        "test_modules": "test_a_compiled_module_inside_a_compiled_step",
    },
    "generators": {"test_state": "test_generators_run_as_written"},
    "concurrent calls from threads": {
        "test_state": "test_concurrent_calls",
        "test_python_state": "test_guards_that_call_python_in_several_threads",
        "test_tiles": "test_threads_run_groups_at_a_time",
    },
}  # fmt: skip


@pytest.mark.parametrize("footgun", FOOTGUNS)
def test_each_has_tests(footgun):
    for file, tests in FOOTGUNS[footgun].items():
        tree = ast.parse(Path(__file__).with_name(f"{file}.py").read_text())
        known = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(tests.split()) <= known
