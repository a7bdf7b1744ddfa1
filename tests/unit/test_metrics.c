// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metrics of small snapshots, whole; tests/listener has promtool judge large ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "metrics.h"
#include "rates.h"

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

static void expect(const char *snapshot, enum metrics_format format, const char *wanted)
{
	json_t *s = parse(snapshot);
	char *text = metrics_text(s, format);

	assert_string_equal(text, wanted);
	free(text);
	json_decref(s);
}

static void expect_line(const char *snapshot, const char *line)
{
	json_t *s = parse(snapshot);
	char *text = metrics_text(s, METRICS_TEXT), *at = text;
	size_t found = 0;

	while ((at = strstr(at, line))) {
		found += (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
		at++;
	}
	if (found != 1)
		fail_msg("%zu times \"%s\" in:\n%s", found, line, text);
	free(text);
	json_decref(s);
}

static void test_negotiate(void **state)
{
	static const struct {
		const char *accept;
		enum metrics_format format;
	} table[] = {
		{ NULL, METRICS_TEXT },
		{ "", METRICS_TEXT },
		{ "*/*", METRICS_TEXT },
		{ "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", METRICS_TEXT },
		{ "application/openmetrics-text", METRICS_OPENMETRICS },
		{ "application/openmetrics-text; version=1.0.0", METRICS_OPENMETRICS },
		{ "Application/OpenMetrics-Text;version=\"1.0.0\"", METRICS_OPENMETRICS },
		{ "application/openmetrics-text;version=0.0.1", METRICS_TEXT },
		{ "application/openmetrics-text;version=1.0.0;q=0.0", METRICS_TEXT },
		{ "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5", METRICS_TEXT },
		/* Prometheus 2 and 3 */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRICS_OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3",
		  METRICS_OPENMETRICS },
		{ ",,;;,=;q=,;q", METRICS_TEXT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (metrics_negotiate(table[i].accept) != table[i].format)
			fail_msg("Accept: %s", table[i].accept);
}

#define SMALL                                                                                                          \
	"{\"build\": {\"version\": \"1.2\"}, \"attached\": true, \"timestamp\": 12.5,"                                 \
	"\"stats\": {\"services\": [{\"name\": \"www\", \"packets\": 3, \"bytes\": 9007199254740993}],"                \
	"\"verdicts\": {\"forwarded\": 3, \"dropped_no_backend\": 0}}}"

static void test_text(void **state)
{
	(void)state;
	expect(SMALL, METRICS_TEXT,
	       "# TYPE ringlb_build_info gauge\n"
	       "# HELP ringlb_build_info Which ringlb this is, and whose program runs.\n"
	       "ringlb_build_info{version=\"1.2\"} 1\n"
	       "# TYPE ringlb_attached gauge\n"
	       "# HELP ringlb_attached 1: the instance runs; 0: nothing is attached.\n"
	       "ringlb_attached 1\n"
	       "# TYPE ringlb_service_packets_total counter\n"
	       "# HELP ringlb_service_packets_total Packets of the service that were sent to a backend.\n"
	       "ringlb_service_packets_total{service=\"www\"} 3\n"
	       "# TYPE ringlb_service_bytes_total counter\n"
	       "# HELP ringlb_service_bytes_total Bytes of these packets, as frames that came in.\n"
	       "ringlb_service_bytes_total{service=\"www\"} 9007199254740993\n"
	       "# TYPE ringlb_packets_total counter\n"
	       "# HELP ringlb_packets_total Packets by what became of them; every packet is counted once.\n"
	       "ringlb_packets_total{verdict=\"forwarded\"} 3\n"
	       "ringlb_packets_total{verdict=\"dropped_no_backend\"} 0\n"
	       "# TYPE ringlb_snapshot_timestamp_seconds gauge\n"
	       "# HELP ringlb_snapshot_timestamp_seconds When these values were read: the time since the epoch.\n"
	       "ringlb_snapshot_timestamp_seconds 12.5\n");
}

static void test_openmetrics(void **state)
{
	(void)state;
	expect(SMALL, METRICS_OPENMETRICS,
	       "# TYPE ringlb_build info\n"
	       "# HELP ringlb_build Which ringlb this is, and whose program runs.\n"
	       "ringlb_build_info{version=\"1.2\"} 1\n"
	       "# TYPE ringlb_attached gauge\n"
	       "# HELP ringlb_attached 1: the instance runs; 0: nothing is attached.\n"
	       "ringlb_attached 1\n"
	       "# TYPE ringlb_service_packets counter\n"
	       "# HELP ringlb_service_packets Packets of the service that were sent to a backend.\n"
	       "ringlb_service_packets_total{service=\"www\"} 3\n"
	       "# TYPE ringlb_service_bytes counter\n"
	       "# UNIT ringlb_service_bytes bytes\n"
	       "# HELP ringlb_service_bytes Bytes of these packets, as frames that came in.\n"
	       "ringlb_service_bytes_total{service=\"www\"} 9007199254740993\n"
	       "# TYPE ringlb_packets counter\n"
	       "# HELP ringlb_packets Packets by what became of them; every packet is counted once.\n"
	       "ringlb_packets_total{verdict=\"forwarded\"} 3\n"
	       "ringlb_packets_total{verdict=\"dropped_no_backend\"} 0\n"
	       "# TYPE ringlb_snapshot_timestamp_seconds gauge\n"
	       "# UNIT ringlb_snapshot_timestamp_seconds seconds\n"
	       "# HELP ringlb_snapshot_timestamp_seconds When these values were read: the time since the epoch.\n"
	       "ringlb_snapshot_timestamp_seconds 12.5\n"
	       "# EOF\n");
}

#define BACKENDS(list) "{\"show\": {\"pools\": [{\"name\": \"web\", \"backends\": [" list "]}]}}"

static void test_backends(void **state)
{
	(void)state;
	expect_line(BACKENDS("{\"name\": \"a\", \"identity\": \"a\", \"address\": \"10.0.0.1\", \"share\": 0.25}"),
		    "ringlb_backend_share_ratio{pool=\"web\",backend=\"a\",address=\"10.0.0.1\"} 0.25");
	/* While one leaves, another of its name may be there. */
	expect_line(BACKENDS("{\"name\": \"a\", \"identity\": \"b\", \"address\": \"10.0.0.1\", \"weight\": 2}"),
		    "ringlb_backend_weight{pool=\"web\",backend=\"a\",address=\"10.0.0.1\",identity=\"b\"} 2");
	/* The same labels twice would make the whole scrape fail. */
	expect_line(BACKENDS("{\"name\": \"a\", \"address\": \"::1\", \"weight\": 2, \"share\": 0.25},"
			     "{\"name\": \"a\", \"address\": \"::1\", \"weight\": 3, \"share\": 0.5}"),
		    "ringlb_backend_share_ratio{pool=\"web\",backend=\"a\",address=\"::1\"} 0.75");
	expect_line(BACKENDS("{\"name\": \"a\", \"address\": \"::1\", \"weight\": 2, \"share\": 0.25},"
			     "{\"name\": \"a\", \"address\": \"::1\", \"weight\": 3, \"share\": 0.5}"),
		    "ringlb_backend_weight{pool=\"web\",backend=\"a\",address=\"::1\"} 5");
	/* Of those that take flows. */
	expect_line(BACKENDS("{\"name\": \"a\", \"address\": \"::1\", \"weight\": 1, \"points\": 5},"
			     "{\"name\": \"b\", \"address\": \"::2\", \"weight\": 3, \"points\": 5},"
			     "{\"name\": \"c\", \"address\": \"::3\", \"weight\": 4, \"points\": 0}"),
		    "ringlb_backend_expected_share_ratio{pool=\"web\",backend=\"b\",address=\"::2\"} 0.75");
	expect_line(BACKENDS("{\"name\": \"a\", \"address\": \"::1\", \"weight\": 1, \"points\": 0}"),
		    "ringlb_backend_expected_share_ratio{pool=\"web\",backend=\"a\",address=\"::1\"} 0");
	expect_line(BACKENDS("{\"name\": \"a\", \"address\": \"::1\", \"health\": \"down\"}"),
		    "ringlb_backend_up{pool=\"web\",backend=\"a\",address=\"::1\"} 0");
	expect_line(BACKENDS("{\"name\": \"a\", \"address\": \"::1\", \"health\": \"unchecked\"}"),
		    "ringlb_backend_up{pool=\"web\",backend=\"a\",address=\"::1\"} 1");
	expect_line(
		"{\"health\": {\"backends\": [{\"pool\": \"web\", \"name\": \"a\", \"address\": \"::1\", \"downs\": 7}]}}",
		"ringlb_backend_health_transitions_total{pool=\"web\",backend=\"a\",address=\"::1\",to=\"down\"} 7");
}

static void test_names(void **state)
{
	(void)state;
	expect_line("{\"stats\": {\"services\": [{\"name\": \"a\\\"b\\\\c\\nd{}\", \"flows\": 1}]}}",
		    "ringlb_service_flows{service=\"a\\\"b\\\\c\\nd{}\"} 1");
}

static void test_histogram(void **state)
{
	static const char snapshot[] =
		"{\"commits\": {\"bounds\": [0.005, 1], \"counts\": [2, 3, 1], \"sum\": 4.25, \"failed\": 1}}";

	(void)state;
	expect(snapshot, METRICS_TEXT,
	       "# TYPE ringlb_build_info gauge\n"
	       "# HELP ringlb_build_info Which ringlb this is, and whose program runs.\n"
	       "ringlb_build_info{version=\"\"} 1\n"
	       "# TYPE ringlb_commit_duration_seconds histogram\n"
	       "# HELP ringlb_commit_duration_seconds How long changes of what runs took.\n"
	       "ringlb_commit_duration_seconds_bucket{le=\"0.005\"} 2\n"
	       "ringlb_commit_duration_seconds_bucket{le=\"1\"} 5\n"
	       "ringlb_commit_duration_seconds_bucket{le=\"+Inf\"} 6\n"
	       "ringlb_commit_duration_seconds_sum 4.25\n"
	       "ringlb_commit_duration_seconds_count 6\n"
	       "# TYPE ringlb_commit_failures_total counter\n"
	       "# HELP ringlb_commit_failures_total Changes that failed and changed nothing.\n"
	       "ringlb_commit_failures_total 1\n");
}

/* Whatever a snapshot says, there are metrics or none, and no crash. */
static void test_nonsense(void **state)
{
	static const char *const snapshots[] = {
		"{}",
		"{\"show\": null, \"stats\": [], \"health\": 3}",
		"{\"show\": {\"pools\": [1, null, {}, {\"backends\": [7, {}]}], \"services\": {}, \"interfaces\": [[]]}}",
		"{\"stats\": {\"services\": [{\"packets\": \"x\"}], \"verdicts\": {\"a\": null, \"b\": {}}}}",
		"{\"commits\": {\"counts\": [1], \"bounds\": 4}, \"memory\": []}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(snapshots) / sizeof(*snapshots); i++)
		for (int format = METRICS_TEXT; format <= METRICS_OPENMETRICS; format++) {
			json_t *s = parse(snapshots[i]);
			char *text = metrics_text(s, (enum metrics_format)format);

			assert_non_null(text);
			free(text);
			json_decref(s);
		}
}

static void test_rates(void **state)
{
	json_t *before = parse(
		"{\"services\": [{\"name\": \"www\", \"packets\": 10, \"bytes\": 100}], \"backends\": ["
		"{\"pool\": \"a\", \"name\": \"x\", \"address\": \"::1\", \"packets\": 5, \"bytes\": 5},"
		"{\"pool\": \"a\", \"name\": \"y\", \"address\": \"::1\", \"packets\": 5, \"bytes\": 5}], \"verdicts\": {\"forwarded\": 9, \"dropped\": 9}}");
	json_t *now = parse("{\"services\": [{\"name\": \"www\", \"packets\": 15, \"bytes\": 600},"
			    "{\"name\": \"new\", \"packets\": 15, \"bytes\": 600}], \"backends\": ["
			    "{\"pool\": \"a\", \"name\": \"y\", \"address\": \"::1\", \"packets\": 4, \"bytes\": 9},"
			    "{\"pool\": \"a\", \"name\": \"x\", \"address\": \"::2\", \"packets\": 9, \"bytes\": 9},"
			    "{\"pool\": \"b\", \"name\": \"x\", \"address\": \"::1\", \"packets\": 9, \"bytes\": 9},"
			    "{\"pool\": \"a\", \"name\": \"x\", \"address\": \"::1\", \"packets\": 5, \"bytes\": 9}],"
			    "\"verdicts\": {\"forwarded\": 12, \"dropped\": 1, \"new\": 7}}");
	json_t *wanted = parse(
		"{\"seconds\": 2.0, \"services\": [{\"name\": \"www\", \"packets\": 2.5, \"bytes\": 250.0}],"
		"\"backends\": [{\"pool\": \"a\", \"name\": \"x\", \"address\": \"::1\", \"packets\": 0.0,"
		"\"bytes\": 2.0}], \"verdicts\": {\"forwarded\": 1.5}}");
	json_t *rates = rates_between(now, before, 2);

	(void)state;
	assert_true(json_equal(rates, wanted));
	json_decref(before);
	json_decref(now);
	json_decref(wanted);
	json_decref(rates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_negotiate), cmocka_unit_test(test_text),  cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_backends),  cmocka_unit_test(test_names), cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_nonsense),  cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
