#include "page/input/bench_file.hpp"

namespace kiln::host::page {
namespace {

Spread read_spread(FieldReader from) {
  const Spread spread{from.amount("median"), from.amount("low"), from.amount("high")};
  if (spread.low > spread.median || spread.median > spread.high) {
    from.refuse("expected low <= median <= high, found " + json_text(from.json()));
  }
  return spread;
}

BenchFigure read_figure(FieldReader from) {
  BenchFigure figure;
  figure.id = from.text("id");
  figure.name = from.text("name");
  figure.unit = from.text("unit");
  const std::string better = from.text("better");
  if (better != "less" && better != "more") from.refuse("better: expected less or more, found '" + better + "'");
  figure.less_is_better = better == "less";
  FieldReader kiln = from.object("kiln");
  figure.kiln = {"Kiln", read_spread(kiln), kiln.count("samples")};
  if (auto peer = from.object_or_null("peer")) {
    figure.peer = Contender{peer->text("name"), read_spread(*peer), peer->count("samples")};
  }
  if (auto ratio = from.object_or_null("ratio")) figure.ratio = read_spread(*ratio);
  if (auto target = from.object_or_null("target")) {
    figure.target = target->text("text");
    figure.target_met = target->truth("met");
  }
  figure.verified = from.truth_or_null("verified");
  figure.group = from.text_or_null("group");
  figure.device = from.text_or_null("device");
  return figure;
}

BenchArea read_area(FieldReader from) {
  BenchArea area;
  area.name = from.text("name");
  area.title = from.text("title");
  area.skipped = from.text_or_null("skipped");
  area.seconds = from.amount("seconds");
  for (const FieldReader& figure : from.objects("figures")) area.figures.push_back(read_figure(figure));
  return area;
}

}  // namespace

BenchFile read_bench(FieldReader document) {
  BenchFile bench;
  bench.kiln = document.text("kiln");
  bench.commit = document.text_or_null("commit");
  bench.started = document.text("started");
  bench.seconds = document.amount("seconds");
  FieldReader machine = document.object("machine");
  bench.cpu = machine.text("cpu");
  bench.kernel = machine.text("kernel");
  bench.os = machine.text("os");
  bench.cores = machine.count("cores");
  bench.memory_bytes = machine.count("memory_bytes");
  bench.quiet = machine.truth("quiet");
  bench.load_before = machine.amount("load_before");
  bench.noise_percent = machine.amount("noise_percent");
  FieldReader versions = machine.object("versions");
  for (const auto& [name, version] : versions.json().items()) {
    bench.versions.emplace_back(name, versions.text_or_null(name.c_str()));
  }
  for (const FieldReader& area : document.objects("areas")) bench.areas.push_back(read_area(area));
  return bench;
}

}  // namespace kiln::host::page
