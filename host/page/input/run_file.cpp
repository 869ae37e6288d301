#include "page/input/run_file.hpp"

namespace kiln::host::page {
namespace {

RunJob read_job(FieldReader job) {
  RunJob read;
  read.name = job.text("name");
  read.op = job.text("op");
  read.status = job.text("status");
  read.error = job.text_or_null("error");
  if (auto device = job.object_or_null("device")) {
    read.device = device->text("id");
    read.device_name = device->text("name");
    read.driver = device->text("driver");
  }
  read.variant = job.text_or_null("variant");
  FieldReader program = job.object("program");
  read.tier = program.text_or_null("tier");
  read.build = program.amount("build_ms");
  read.runs = job.count("runs");
  FieldReader ms = job.object("ms");
  read.queue = ms.amount("queue");
  read.upload = ms.amount("upload");
  read.on_device = ms.amount("device");
  read.readback = ms.amount("readback");
  read.wall_median = ms.amount("wall_median");
  read.wall_min = ms.amount("wall_min");
  read.wall_max = ms.amount("wall_max");
  read.first_result = ms.amount("first_result");
  read.gflops = job.amount_or_null("gflops").value_or(0);
  if (auto work = job.object_or_null("work")) {
    read.flops = work->amount_or_null("flops");
    read.bytes = work->amount_or_null("bytes");
    read.roof_gflops = work->amount_or_null("roof_gflops");
  }
  read.verified = job.truth_or_null("verified");
  return read;
}

}  // namespace

CacheCounts read_cache_counts(FieldReader cache) {
  CacheCounts counts;
  counts.memory_hits = cache.count("memory_hits");
  counts.disk_hits = cache.count("disk_hits");
  counts.misses = cache.count("misses");
  counts.builds = cache.count("builds");
  counts.prepared = cache.count("prepared");
  counts.bytes_on_disk = cache.count("bytes_on_disk");
  counts.saved_ms = cache.number("saved_ms");
  FieldReader rejected = cache.object("rejected");
  for (const auto& [reason, count] : rejected.json().items()) {
    counts.rejected.emplace_back(reason, rejected.count(reason.c_str()));
  }
  return counts;
}

RunFile read_run(FieldReader document) {
  RunFile run;
  run.kiln = document.text("kiln");
  for (const FieldReader& job : document.objects("jobs")) run.jobs.push_back(read_job(job));
  run.total = document.amount("total_ms");
  run.setup = document.amount_or_null("setup_ms");
  run.cache = read_cache_counts(document.object("cache"));
  return run;
}

}  // namespace kiln::host::page
