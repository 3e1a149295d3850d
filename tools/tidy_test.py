#!/usr/bin/env python3
"""Shows tidy.py bad examples, each of which it must find, and good ones, which it must leave alone."""

import pathlib
import shutil
import sys
import tempfile
import unittest

import tidy

HEADER = "// Thing: what it is.\n#pragma once\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "tools").mkdir()
        shutil.copy(tidy.__file__, self.root / "tools/tidy.py")
        shutil.copy(pathlib.Path(tidy.__file__).parent / "layers.txt", self.root / "tools")

    def write(self, path, text, listed=True):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if listed:
            with (file.parent / "CMakeLists.txt").open("a") as lists:
                lists.write(f"add({file.name})\n")

    def findings(self):
        return [(path, line, rule) for path, line, rule, _ in tidy.findings_of(self.root)]

    def expect(self, path, line, rule, text, **options):
        self.write(path, text, **options)
        self.assertEqual(self.findings(), [(path, line, rule)])

    def expect_clean(self, path, text):
        self.write(path, text)
        self.assertEqual(self.findings(), [])

    # Layering.

    def test_a_lower_module_may_not_include_a_higher_one(self):
        self.expect("ordo/core/a.cc", 2, "layering", '\n#include "ordo/lane/keyed_queue.h"\n')

    def test_a_product_may_not_include_another(self):
        self.expect("ordo/pool/a.cc", 1, "layering", '#include "ordo/broker/broker.h"\n')

    def test_a_product_may_not_include_another_through_its_door(self):
        self.expect("ordo/dispatcher/a.cc", 1, "layering", '#include "ordo/pool.h"\n')

    def test_the_broker_may_include_the_bus(self):
        self.expect_clean("ordo/broker/a.cc", '#include "ordo/bus/bus.h"\n')

    def test_who_speaks_the_wire_may_include_what_is_generated_for_it(self):
        self.expect_clean("ordo/adapters/pubsub_wire/a.cc",
                          "#include <ordo/operate/v1/operator.pb.h>\n")

    def test_others_may_not_include_what_is_generated_for_the_wire(self):
        self.expect("ordo/broker/a.cc", 1, "layering",
                    "#include <ordo/operate/v1/operator.pb.h>\n")

    def test_the_kernel_may_not_include_the_app(self):
        self.expect("ordo/runtime/a.cc", 1, "layering", '#include "ordo/app/map.h"\n')

    def test_the_app_may_include_any_product(self):
        self.expect_clean("ordo/app/a.cc", '#include "ordo/pool.h"\n#include "ordo/core/clock.h"\n')

    def test_the_kernel_uses_the_standard_library_only(self):
        self.expect("ordo/lane/a.cc", 1, "layering", "#include <boost/lockfree/queue.hpp>\n")

    def test_the_command_line_parser_belongs_to_the_app(self):
        self.expect("ordo/pool/a.cc", 1, "layering", "#include <CLI/CLI.hpp>\n")

    def test_test_libraries_stay_out_of_sources(self):
        self.expect("ordo/core/a.cc", 1, "layering", "#include <gtest/gtest.h>\n")

    def test_tests_may_use_test_libraries(self):
        self.expect_clean("ordo/core/a_test.cc", "#include <gtest/gtest.h>\n")

    def test_examples_include_public_doors_only(self):
        self.expect("examples/a.cc", 1, "layering", '#include "ordo/pool/window.h"\n')

    def test_includes_name_the_full_path(self):
        self.expect("ordo/core/a.cc", 1, "include", '#include "check.h"\n')

    def test_a_file_outside_every_module_is_found(self):
        self.expect("ordo/misc/a.cc", 1, "module", "int a;\n")

    def test_a_public_door_belongs_to_its_product(self):
        self.write("ordo/pool.h", HEADER + '#include "ordo/pool/options.h"\n', listed=False)
        self.write("ordo/pool/CMakeLists.txt", "ordo_module(pool HEADERS ../pool.h)\n", listed=False)
        self.assertEqual(self.findings(), [])

    # Banned calls.

    def test_threads_are_made_in_runtime_only(self):
        self.expect("ordo/pool/a.cc", 1, "thread", "std::jthread worker;\n")

    def test_runtime_may_make_threads(self):
        self.expect_clean("ordo/runtime/a.cc", "std::thread worker;\n")

    def test_asking_for_the_number_of_cores_is_not_making_a_thread(self):
        self.expect_clean("ordo/pool/a.cc", "auto n = std::thread::hardware_concurrency();\n")

    def test_tests_do_not_sleep(self):
        self.expect("ordo/pool/a_test.cc", 1, "sleep", "std::this_thread::sleep_for(1ms);\n")

    def test_flow_tests_do_not_sleep(self):
        self.expect("tests/flow/a_test.cc", 1, "sleep", "usleep(10);\n")

    def test_sources_take_the_time_from_the_clock(self):
        self.expect("ordo/lane/a.cc", 1, "clock", "auto t = std::chrono::steady_clock::now();\n")

    def test_the_clock_may_ask_the_system(self):
        self.expect_clean("ordo/core/clock.cc", "auto t = std::chrono::steady_clock::now();\n")

    def test_benchmarks_take_the_time_from_the_clock_too(self):
        self.expect("bench/pool/a.cc", 1, "clock", "clock_gettime(CLOCK_MONOTONIC, &t);\n")

    def test_fences_are_found(self):
        self.expect("ordo/runtime/a.h", 3, "fence", HEADER + "std::atomic_thread_fence(order);\n")

    def test_throw_is_found(self):
        self.expect("ordo/pool/a.cc", 1, "throw", "throw std::runtime_error(text);\n")

    def test_a_throw_with_a_reason_is_allowed(self):
        self.expect_clean("ordo/pool/a.cc", "throw e;  // tidy: allow(throw) names the option\n")

    def test_the_reason_may_stand_on_the_line_above(self):
        self.expect_clean("ordo/pool/a.cc", "// tidy: allow(throw) names the option\nthrow e;\n")

    def test_a_permission_without_a_reason_counts_for_nothing(self):
        self.expect("ordo/pool/a.cc", 1, "throw", "throw e;  // tidy: allow(throw)\n")

    def test_a_permission_for_another_rule_counts_for_nothing(self):
        self.expect("ordo/pool/a.cc", 1, "throw", "throw e;  // tidy: allow(clock) because\n")

    def test_handlers_of_tests_may_throw(self):
        self.expect_clean("ordo/pool/a_test.cc", "throw std::runtime_error(text);\n")

    def test_words_in_comments_and_strings_are_not_calls(self):
        self.expect_clean("ordo/pool/a.cc", 'say("throw \\" std::jthread");  // sleep_for\n')

    def test_detached_threads_are_found(self):
        self.expect("ordo/runtime/a.cc", 1, "detach", "worker.detach();\n")

    # Names, sizes, leftovers, files.

    def test_names_that_say_nothing_are_found(self):
        self.expect("ordo/pool/a.cc", 1, "name", "class PoolManager {};\n")

    def test_leftovers_are_found_in_comments(self):
        self.expect("ordo/pool/a.cc", 2, "leftover", "int a;\n// TO" + "DO: finish\n")

    def test_long_lines_are_found(self):
        self.expect("ordo/pool/a.cc", 2, "length", "int a;\n// " + "x" * 98 + "\n")

    def test_long_files_are_found(self):
        self.expect("ordo/pool/a.cc", 600, "size", "int a;\n" * 601)

    def test_unlisted_files_are_found(self):
        self.expect("ordo/pool/a.cc", 1, "unlisted", "int a;\n", listed=False)

    def test_a_file_whose_name_ends_like_a_listed_one_is_unlisted(self):
        self.write("ordo/pool/big_a.cc", "int a;\n")
        self.expect("ordo/pool/a.cc", 1, "unlisted", "int a;\n", listed=False)

    def test_unlisted_tests_are_found(self):
        self.expect("tests/flow/a_test.cc", 1, "unlisted", "int a;\n", listed=False)

    def test_headers_say_what_they_are(self):
        self.expect("ordo/pool/a.h", 1, "header", "#pragma once\n")

    def test_headers_have_a_guard(self):
        self.expect("ordo/pool/a.h", 1, "header", "// Thing: what it is.\n")

    def test_dead_links_in_documents_are_found(self):
        self.expect("docs/a.md", 2, "link", "\n[the pool](pool.md)\n", listed=False)

    def test_links_to_files_and_to_the_web_are_fine(self):
        self.write("docs/b.md", "[a](https://example.org/x) [b](../tools/layers.txt#core)\n"
                   "```cpp\n[](int n) { }\n```\n", listed=False)
        self.assertEqual(self.findings(), [])


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    unittest.main()
