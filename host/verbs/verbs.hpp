// How verbs end: the result to where it was asked for, the exit status to main.
//
// Thread-safety: main thread only.
#pragma once

#include "console.hpp"
#include "options.hpp"

#include <kiln/status.hpp>

#include <kiln_json.hpp>

#include <cstdint>
#include <string>

namespace kiln::host {

// Complains, and answers the exit status that fits: 2 where what was asked for is wrong, else 1.
int complain_of(const Status& status);

// Whether --output can be written, for verbs that work for long. As AtomicFile::create() and check_writable().
Status check_output(const Options& options);

// The result to standard output or --output. Where the file cannot be written, that is complained of, and the result
// goes to standard output, so that the work is not lost; answers false.
bool write_result(const std::string& text, const Options& options);
// The same; `status` where that worked, else one that is not 0.
int finish(const std::string& text, const Options& options, int status = exit_done);
int finish_json(const Json& json, const Options& options, int status = exit_done);

// The verbs of `kiln`: each takes the parsed options and answers the exit status.
//
// Thread-safety: main thread only.

int print_help(const Options& options);
int print_version(const Options& options);
int run(const Options& options);
int tune(const Options& options);
int tune_audit(const Options& options);
int tune_push(const Options& options);
int tune_pull(const Options& options);
int tune_export(const Options& options);
int tune_import(const Options& options);
int devices(const Options& options);
int plugins(const Options& options);
int config_check(const Options& options);
int config_show(const Options& options);
int selector_show(const Options& options);
int selector_explain(const Options& options);
int selector_reset(const Options& options);
int selector_replay(const Options& options);
int cache_stats(const Options& options);
int cache_list(const Options& options);
int cache_inspect(const Options& options);
int cache_release(const Options& options);
int cache_verify(const Options& options);
int cache_prune(const Options& options);
int cache_clear(const Options& options);
int cache_warm(const Options& options);
int cache_explain(const Options& options);
int cache_persist(const Options& options);
int cache_export(const Options& options);
int cache_import(const Options& options);
int cache_key_create(const Options& options);
int cache_key_trust(const Options& options);
int cache_key_revoke(const Options& options);
int cache_key_list(const Options& options);
int cache_push(const Options& options);
int cache_pull(const Options& options);
int cache_remote_status(const Options& options);
int cache_layer_create(const Options& options);
int cache_bake(const Options& options);
int kernel_build(const Options& options);
int pm4_dump(const Options& options);
int simulate(const Options& options);
int report(const Options& options);
int bench(const Options& options);
int bench_compare(const Options& options);
int bench_table(const Options& options);

}  // namespace kiln::host
