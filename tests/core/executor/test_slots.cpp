// The times of a job, and the stages of its trace, from time stamps worked out by hand.
#include "core/executor/jobs.hpp"

#include "executor/slot.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace kiln;
using namespace kiln::test;
using executor::Slot;
using executor::Stamps;

namespace {

Stamps usual_stamps() {
  Stamps at;
  at.entered = 100, at.accepted = 110, at.begun = 130;
  at.built = 170, at.uploaded = 250;
  at.submitting = 410, at.submitted = 420;
  at.finished = 1700;
  at.reading = 2000, at.done = 2640;
  return at;
}

class ToldStages final : public TraceSink {
 public:
  void add_job(std::span<const StageSpan> stages) noexcept override {
    for (const StageSpan& span : stages) {
      all.push_back(std::string(span.device) + " " + std::string(span.label) + " slot " + std::to_string(span.slot) +
                    " fence " + std::to_string(span.fence) + " " + std::string(to_string(span.stage)) + " " +
                    std::to_string(span.begin_ns) + " to " + std::to_string(span.end_ns));
    }
  }
  std::vector<std::string> all;
};

// The stages as "job 1 to 2", without what they have in common.
std::vector<std::string> told(const Slot& slot) {
  ToldStages lines;
  slot.tell(lines, "d:0");
  std::vector<std::string> stages;
  const std::string common = "d:0 add_one slot 5 fence 9 ";
  for (const std::string& line : lines.all) {
    CHECK_THAT(line, Catch::StartsWith(common));
    stages.push_back(line.substr(std::min(common.size(), line.size())));
  }
  return stages;
}

using StageTexts = std::vector<std::string>;

// A slot with a job of the variant add_one.
struct JobInSlot {
  JobInSlot() {
    slot.accept(add_one(device, {1}).submission);
    slot.value = 9;
    slot.at = usual_stamps();
  }
  ~JobInSlot() { slot.release(); }

  std::shared_ptr<SyntheticDevice> device = std::make_shared<SyntheticDevice>();
  Slot slot{5};
};

}  // namespace

TEST_CASE("slot: each time of a job lies between its own two stamps", "[executor][slot]") {
  JobInSlot job;
  job.slot.packed = 1;
  job.slot.jobs_in_batch = 3;
  Measurement measured = job.slot.measured();
  CHECK(measured.queue_ns == 30 + 160);
  CHECK(measured.build_ns == 40);
  CHECK(measured.upload_ns == 80);
  CHECK(measured.device_ns == 0);
  CHECK(measured.readback_ns == 640);
  CHECK(measured.wall_ns == 2540);
  CHECK(measured.prepared);
  CHECK(measured.batch == 3);
  CHECK(measured.variant == "add_one");
  CHECK_FALSE(measured.first_run);

  job.slot.at.done = 50;  // before it was entered: no time, not a very long one
  job.slot.at.built = 120;
  measured = job.slot.measured();
  CHECK(measured.wall_ns == 0);
  CHECK(measured.readback_ns == 0);
  CHECK(measured.build_ns == 0);
}

TEST_CASE("slot: the wait for the jobs before it on the device belongs to the queue", "[executor][slot]") {
  struct Case {
    const char* what;
    std::uint64_t free, device_begun, device_ns;
    std::uint64_t waited;  // after the submission began, at 410
  };
  const Case cases[] = {{"nothing is known", 0, 0, 0, 0},
                        {"the device was free later, and tells no times", 910, 0, 0, 0},
                        {"it was free later, and began after that", 910, 1000, 600, 500},
                        {"it began before the one before it was retired", 910, 800, 600, 390},
                        {"it tells how long it worked", 910, 0, 1000, 290},
                        {"it tells how long it worked, and was free before", 610, 0, 1000, 200},
                        {"it was free before the submission", 300, 1000, 600, 0},
                        {"it was free after the end", 5000, 3000, 600, 1290},
                        {"it worked longer than there was time", 910, 0, 9999, 0}};
  for (const Case& each : cases) {
    CAPTURE(each.what);
    JobInSlot job;
    job.slot.at.free = each.free;
    job.slot.at.device_begun = each.device_begun;
    job.slot.device_ns = each.device_ns;
    CHECK(job.slot.measured().queue_ns == 190 + each.waited);
    CHECK(job.slot.measured().device_ns == each.device_ns);
  }
}

TEST_CASE("slot: the trace has each stage that a job came to", "[executor][slot][trace]") {
  JobInSlot job;
  Stamps& at = job.slot.at;
  CHECK(told(job.slot) == StageTexts{"job 110 to 2640", "queue 110 to 130", "build 130 to 170", "upload 170 to 250",
                                     "submit 410 to 420", "device 420 to 1700", "readback 2000 to 2640"});
  SECTION("the device tells when it began and how long it worked") {
    at.device_begun = 500, job.slot.device_ns = 700;
    CHECK(told(job.slot)[4] == "submit 410 to 420");
    CHECK(told(job.slot)[5] == "device 500 to 1200");
  }
  SECTION("it tells only how long") {
    job.slot.device_ns = 700;
    CHECK(told(job.slot)[5] == "device 420 to 1700");
  }
  SECTION("it tells only when") {
    at.device_begun = 500;
    CHECK(told(job.slot)[5] == "device 500 to 1700");
  }
  SECTION("it began inside the call") {
    at.device_begun = 415, job.slot.device_ns = 700;
    CHECK(told(job.slot)[4] == "submit 410 to 415");
    CHECK(told(job.slot)[5] == "device 415 to 1115");
  }
  SECTION("its times lie outside what the host saw") {
    at.device_begun = 300, job.slot.device_ns = 9999;
    CHECK(told(job.slot)[4] == "submit 410 to 410");
    CHECK(told(job.slot)[5] == "device 410 to 1700");
    at.device_begun = 5000;
    CHECK(told(job.slot)[5] == "device 1700 to 1700");
  }
  SECTION("a job that failed while it was uploaded") {
    at = {};
    at.entered = 100, at.accepted = 110, at.begun = 130, at.built = 170, at.uploaded = 250;
    CHECK(told(job.slot) == StageTexts{"job 110 to 250", "queue 110 to 130", "build 130 to 170", "upload 170 to 250"});
  }
  SECTION("a job that failed while its constants were made") {
    at = {};
    at.accepted = 110, at.begun = 130;
    CHECK(told(job.slot) == StageTexts{"job 110 to 130", "queue 110 to 130"});
    at.built = 180;
    CHECK(told(job.slot) == StageTexts{"job 110 to 180", "queue 110 to 130", "build 130 to 180"});
  }
  SECTION("a job that was not read back") {
    at.reading = at.done = 0;
    CHECK(told(job.slot).size() == 6);
    CHECK(told(job.slot)[0] == "job 110 to 1700");
    at.finished = 0;
    CHECK(told(job.slot).size() == 5);
    CHECK(told(job.slot)[0] == "job 110 to 420");
  }
}

TEST_CASE("slot: a released slot has nothing of its job", "[executor][slot]") {
  JobInSlot job;
  job.slot.failure = io_error("failed");
  job.slot.device_value = 3;
  job.slot.device_ns = 4;
  job.slot.chain.bytes = 5;
  job.slot.packed = 6;
  job.slot.jobs_in_batch = 7;
  job.slot.upload_apart = true;
  job.slot.release();
  CHECK(job.slot.failure.ok());
  CHECK(job.slot.at.done == 0);
  CHECK(job.slot.device_value == 0);
  CHECK(job.slot.device_ns == 0);
  CHECK(job.slot.chain.bytes == 0);
  CHECK(job.slot.packed == 0);
  CHECK(job.slot.jobs_in_batch == 1);
  CHECK_FALSE(job.slot.upload_apart);
  CHECK(job.slot.number() == 5);

  Submission submission = add_one(job.device, {1}).submission;
  for (const Completion completion : {Completion::unordered, Completion::ordered}) {
    submission.completion = completion;
    job.slot.accept(submission);
    CHECK(job.slot.ordered == (completion == Completion::ordered));
    CHECK(job.slot.measured().wall_ns == 0);
  }
}
