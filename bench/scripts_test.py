#!/usr/bin/env python3
"""Tests of what the benchmark scripts conclude from results."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare  # noqa: E402
import figures  # noqa: E402
import kernel  # noqa: E402
import report  # noqa: E402
from support import measuring  # noqa: E402

MACHINE = {"kind": "machine", "mode": "full", "processor": "Some CPU", "processors": 2,
           "memory_gib": 8.0, "kernel": "Linux 6", "build": "Release"}


def pool_case(contender, ns, workers=2, workload="empty", group="throughput", **more):
    case = {"kind": "pool", "group": group, "workload": workload, "contender": contender,
            "title": contender.upper(), "message": "value", "workers": workers, "window": 1024,
            "items": 1000, "rounds": 3, "disturbed": 0, "ns_per_item": ns, "seconds": ns / 1e6,
            "ns_per_item_min": ns, "ns_per_item_max": ns, "items_per_s": 1e9 / ns,
            "cpu_ns_per_item": ns, "p99_us": 1.0, "allocations_per_item": 0.0}
    case.update(more)
    return case


def map_case(contender, us):
    return {"kind": "map", "case": "true", "contender": contender, "title": contender,
            "lines": 1000, "rounds": 3, "disturbed": 0, "us_per_line": us, "lines_per_s": 1e6 / us,
            "us_per_line_without_start": us, "cpu_us_per_line": us, "start_ms": 1.0}


def bus_case(contender, ns, mode="polled", subscribers=10):
    return {"kind": "bus", "group": "publish", "mode": mode, "contender": contender,
            "title": contender, "subscribers": subscribers, "rounds": 3, "disturbed": 0,
            "ns_per_publish": ns}


def overload_case(load, *shares):
    names = ("critical", "high", "normal", "best_effort")
    return {"kind": "bus", "group": "overload", "load": load, "disturbed": 0,
            **{f"dropped_{name}": share for name, share in zip(names, shares)}}


def gateway_case(contender, per_s, pipelining=16, **more):
    return {"kind": "gateway", "group": "closed", "contender": contender, "title": contender,
            "pipelining": pipelining, "rounds": 3, "disturbed": 0, "requests_per_s": per_s,
            "p50_us": 1.0, "p99_us": 2.0, "p999_us": 3.0, **more}


def broker_case(group, contender="ordo", **more):
    return {"kind": "broker", "group": group, "contender": contender, "title": contender,
            "sync": "commit", "size": 100, "batch": 100, "outstanding": 1, "keys": 0, "rounds": 3,
            "disturbed": 0, "messages_per_s": 100.0, "p50_us": 1.0, "p99_us": 2.0, **more}


def wire_case(group, contender="ordo", per_s=100.0, **more):
    return {"kind": "wire", "group": group, "contender": contender, "title": contender,
            "promise": "fsync", "size": 100, "batch": 100, "lanes": 0, "rounds": 3, "disturbed": 0,
            "messages_per_s": per_s, "us_per_message": 1e6 / per_s, "p50_us": 1.0, "p99_us": 2.0,
            "server_us_per_message": 1.0, "client_us_per_message": 1.0, **more}


def ring_case(contender, ns, producers=1, batch=1, waiting="spin"):
    return {"kind": "rings", "contender": contender, "title": contender, "waiting": waiting,
            "producers": producers, "batch": batch, "rounds": 3, "disturbed": 0, "ns_per_item": ns}


def verdict(cases, start):
    return next(f.verdict for f in figures.all_figures(cases) if f.what.startswith(start))


class FiguresTest(unittest.TestCase):
    def test_a_cost_at_the_limit_passes_and_one_above_is_short(self):
        self.assertEqual(verdict([pool_case("ordo", 45)], "empty work, 2"), figures.PASS)
        self.assertEqual(verdict([pool_case("ordo", 46)], "empty work, 2"), figures.SHORT)

    def test_the_best_rival_is_the_one_that_counts(self):
        cases = [pool_case("ordo", 25), pool_case("tbb_flow", 300), pool_case("tbb_pipeline", 90)]
        self.assertEqual(verdict(cases, "empty work, 2 workers, beside"), figures.SHORT)
        cases[2] = pool_case("tbb_pipeline", 100)
        self.assertEqual(verdict(cases, "empty work, 2 workers, beside"), figures.PASS)

    def test_the_better_of_our_own_forms_counts_and_is_named(self):
        cases = [pool_case("ordo", 50), pool_case("ordo_pointer", 40)]
        found = next(f for f in figures.all_figures(cases) if f.what.startswith("empty work, 2"))
        self.assertEqual((found.verdict, found.measured), (figures.PASS, "40.0 ns (ORDO_POINTER)"))

    def test_a_case_without_results_is_not_measured(self):
        self.assertEqual(verdict([pool_case("ordo", 45)], "ordo map"), figures.NOT_MEASURED)

    def test_the_dearer_way_of_draining_a_bus_counts(self):
        cases = [bus_case("ordo", 100), bus_case("ordo", 251, mode="threads")]
        self.assertEqual(verdict(cases, "bus: publish to 10, draining"), figures.SHORT)
        cases[1] = bus_case("ordo", 250, mode="threads")
        self.assertEqual(verdict(cases, "bus: publish to 10, draining"), figures.PASS)

    def test_priorities_are_paid_for_by_the_difference(self):
        cases = [bus_case("ordo", 120), bus_case("ordo_equal", 100)]
        self.assertEqual(verdict(cases, "bus: what priorities cost, 10"), figures.NOT_MEASURED)
        what = "bus: what priorities cost, 10 subscribers, polled"
        self.assertEqual(verdict(cases, what), figures.PASS)
        self.assertEqual(verdict([cases[0], bus_case("ordo_equal", 99)], what), figures.SHORT)

    def test_overload_is_judged_where_it_begins(self):
        cases = [overload_case(0.5, 0, 0, 0, 0), overload_case(1.25, 0, 9, 40, 80),
                 overload_case(2, 0, 60, 70, 80)]
        self.assertEqual(verdict(cases, "bus: dropped"), figures.PASS)
        cases[1] = overload_case(1.25, 0, 9, 80, 40)
        self.assertEqual(verdict(cases, "bus: dropped"), figures.SHORT)

    def test_the_gateway_has_to_be_ahead_of_the_best_of_redis_when_pipelined(self):
        cases = [gateway_case("ordo_text", 100), gateway_case("ordo_binary", 120),
                 gateway_case("redis_set", 90), gateway_case("benchmark_get", 119),
                 gateway_case("redis_ping", 500)]
        what = "gateway: 50 connections, pipelining 16"
        self.assertEqual(verdict(cases, what), figures.PASS)
        self.assertEqual(verdict([*cases, gateway_case("redis_get", 120)], what), figures.SHORT)

    def test_without_pipelining_the_gateway_may_be_a_fifth_behind(self):
        what = "gateway: 50 connections, pipelining 1,"
        rival = gateway_case("redis_set", 100, 1)
        self.assertEqual(verdict([gateway_case("ordo_text", 80, 1), rival], what), figures.PASS)
        self.assertEqual(verdict([gateway_case("ordo_text", 79, 1), rival], what), figures.SHORT)

    def test_memory_that_grows_with_ids_is_short(self):
        case = gateway_case("ordo_binary", 1, group="ids", requests=1_000_000,
                            rss_growth_bytes=1 << 20)
        self.assertEqual(verdict([case], "gateway: memory"), figures.PASS)
        case["rss_growth_bytes"] += 1
        self.assertEqual(verdict([case], "gateway: memory"), figures.SHORT)

    def test_a_durable_publish_is_judged_by_its_share_of_the_file(self):
        raw = broker_case("publish", "raw", size=1024, messages_per_s=1000)
        what = "broker: durable publish"
        for per_s, expected in ((400, figures.PASS), (399, figures.SHORT)):
            ours = broker_case("publish", size=1024, messages_per_s=per_s)
            self.assertEqual(verdict([ours, raw], what), expected)
        self.assertEqual(verdict([raw], what), figures.NOT_MEASURED)

    def test_a_backlog_counts_only_if_it_is_large_and_its_worst_case_decides(self):
        small = broker_case("backlog", messages=10_000, serving_s=9, rss_bytes_per_message=900)
        what = "broker: restart"
        self.assertEqual(verdict([small], what), figures.NOT_MEASURED)
        cases = [broker_case("backlog", size=size, messages=1_000_000, serving_s=seconds,
                             rss_bytes_per_message=150) for size, seconds in ((100, 1), (1024, 3))]
        self.assertEqual(verdict(cases, what), figures.SHORT)
        self.assertEqual(verdict(cases, "broker: resident"), figures.PASS)

    def test_blocked_keys_may_cost_the_others_a_tenth(self):
        without = broker_case("blocked", "without", messages_per_s=1000, p99_us=100)
        for per_s, p99, expected in ((900, 110, figures.PASS), (899, 111, figures.SHORT),
                                     (2000, 50, figures.PASS)):
            cases = [without, broker_case("blocked", "with", messages_per_s=per_s, p99_us=p99)]
            self.assertEqual(verdict(cases, "broker: messages/s beside"), expected)
            self.assertEqual(verdict(cases, "broker: p99 beside"), expected)

    def test_the_wire_is_judged_beside_the_best_peer_that_syncs(self):
        what = "wire: publish, receive, acknowledge, batches of 100, 100 B, beside the best that s"
        cases = [wire_case("flow", per_s=250), wire_case("flow", "rabbit", 50),
                 wire_case("flow", "redis_always", 100), wire_case("flow", "nats", 900),
                 wire_case("flow", "postgres", 500, batch=1000)]
        self.assertEqual(verdict(cases, what), figures.PASS)
        cases[0] = wire_case("flow", per_s=249)
        self.assertEqual(verdict(cases, what), figures.SHORT)
        self.assertEqual(verdict(cases[1:], what), figures.NOT_MEASURED)

    def test_a_lean_client_does_not_stand_for_the_common_one(self):
        cases = [wire_case("flow", per_s=90), wire_case("flow", "ordo_lean", 500),
                 wire_case("flow", "shell", 100)]
        what = "wire: publish, receive, acknowledge, batches of 100, 100 B, beside a gRPC shell"
        self.assertEqual(verdict(cases, what), figures.SHORT)

    def test_a_durable_publish_is_judged_by_the_disk_and_a_bare_call(self):
        cases = [wire_case("fsync", "disk", p50_us=100.0), wire_case("sync", p50_us=260.0),
                 wire_case("unary", "echo_cq1", window=1, p50_us=130.0),
                 wire_case("unary", "echo_callback", window=1, p50_us=100.0)]
        what = "wire: p50 of one durable publish by libgrpc++"
        self.assertEqual(verdict(cases, what), figures.PASS)
        cases[1]["p50_us"] = 261.0
        self.assertEqual(verdict(cases, what), figures.SHORT)

    def test_small_calls_have_to_be_faster_than_the_best_form_of_the_library(self):
        cases = [wire_case("unary", per_s=100, window=16),
                 wire_case("unary", "echo_cq1", 99, window=16)]
        what = "wire: small calls, 16 under way, by libgrpc++"
        self.assertEqual(verdict(cases, what), figures.PASS)
        cases.append(wire_case("unary", "echo_callback", 100, window=16))
        self.assertEqual(verdict(cases, what), figures.SHORT)

    def test_a_ring_is_judged_by_its_own_time(self):
        cases = [ring_case("ordo_spsc", 35), ring_case("boost_spsc", 20)]
        self.assertEqual(verdict(cases, "ring: one producer, spinning"), figures.PASS)
        cases[0] = ring_case("ordo_spsc", 35.1)
        self.assertEqual(verdict(cases, "ring: one producer, spinning"), figures.SHORT)
        self.assertEqual(verdict(cases, "ring: two producers, block"), figures.NOT_MEASURED)

    def test_a_failed_run_does_not_pass(self):
        cases = [pool_case("ordo", 10, failure="3 messages lost or out of order")]
        self.assertEqual(verdict(cases, "empty work, 2"), figures.NOT_MEASURED)

    def test_the_worse_of_both_ways_to_count_map_overhead_decides(self):
        ours, rival = map_case("ordo", 400.0), map_case("parallel", 1000.0)
        self.assertEqual(verdict([ours, rival], "ordo map"), figures.PASS)
        ours["us_per_line_without_start"] = 600.0
        self.assertEqual(verdict([ours, rival], "ordo map"), figures.SHORT)

    def test_one_allocation_per_item_is_short(self):
        cases = [pool_case("ordo", 10), pool_case("ordo", 10, 8, allocations_per_item=1.0)]
        self.assertEqual(verdict(cases, "allocations"), figures.SHORT)


class CompareTest(unittest.TestCase):
    def compare(self, before, after):
        as_dict = [{compare.identity(case): case for case in cases} for cases in (before, after)]
        lines = []
        return compare.compare(*as_dict, 0.05, False, lines.append), lines

    def test_the_same_results_are_not_worse(self):
        self.assertEqual(self.compare([pool_case("ordo", 40)], [pool_case("ordo", 40)]), (0, []))

    def test_a_slower_run_is_worse(self):
        bad, lines = self.compare([pool_case("ordo", 40)], [pool_case("ordo", 50)])
        self.assertEqual(bad, 2)  # Wall time and processor time.
        self.assertIn("x1.250", lines[0])

    def test_a_change_within_the_spread_of_the_rounds_is_noise(self):
        before = pool_case("ordo", 40, ns_per_item_min=38, ns_per_item_max=52)
        self.assertEqual(self.compare([before], [pool_case("ordo", 50)])[0], 0)

    def test_a_case_that_is_gone_or_failed_is_bad(self):
        before = [pool_case("ordo", 40), pool_case("ordo", 40, 8)]
        bad, lines = self.compare(before, [pool_case("ordo", 40, failure="killed")])
        self.assertEqual(bad, 2)
        self.assertEqual(len(lines), 2)


class KernelTest(unittest.TestCase):
    def test_repetitions_become_their_median_in_nanoseconds(self):
        runs = [{"name": "turn/1", "run_name": "turn/1", "run_type": "iteration", "real_time": time,
                 "time_unit": "us", "items_per_second": 1e6} for time in (1.0, 9.0, 2.0)]
        average = {"name": "turn/1_mean", "run_name": "turn/1", "run_type": "aggregate",
                   "real_time": 4.0, "time_unit": "us"}
        found = kernel.condense("lane", [*runs, average])
        self.assertEqual([(case["name"], case["ns"], case["ns_max"]) for case in found],
                         [("turn/1", 2000.0, 9000.0)])


class ReportTest(unittest.TestCase):
    def write(self, cases):
        with tempfile.TemporaryDirectory() as folder:
            measuring.write_results(os.path.join(folder, "pool.json"), [MACHINE, *cases])
            with open(report.write_report(folder, folder), encoding="utf-8") as file:
                return file.read()

    def test_every_number_comes_from_the_results(self):
        text = self.write([pool_case("ordo", 41.25), pool_case("tbb_pipeline", 99.5)])
        self.assertIn("| ORDO | 41.2 |", text)
        self.assertIn("2 x Some CPU, 8 GiB memory", text)
        self.assertNotIn("smoke run", text)

    def test_a_disturbed_case_is_marked(self):
        self.assertIn("| ORDO | 41.0* |", self.write([pool_case("ordo", 41, disturbed=1)]))

    def test_a_failed_run_is_told(self):
        text = self.write([pool_case("ordo", 41), pool_case("tbb_flow", 41, failure="killed")])
        self.assertIn("Failed runs", text)
        self.assertIn("| TBB_FLOW | empty | 2 | killed |", text)

    def test_no_results_are_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(RuntimeError):
                report.write_report(folder, folder)


if __name__ == "__main__":
    unittest.main()
