#include "runtime/job.hpp"

#include "runtime/verification.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace kiln {
namespace {

// One reference too few would leave an output uncompared and call it verified.
Status check_expected(const RunRequest& request, const std::vector<TensorDecl>& declared) {
  const auto inouts = std::ranges::count(declared, TensorRole::inout, &TensorDecl::role);
  if (request.expected.empty() || std::cmp_equal(request.expected.size(), inouts)) return {};
  return invalid_argument(std::to_string(request.expected.size()) + " expected tensors given, expected " +
                          std::to_string(inouts) + ": one for each output and inout");
}

Status check(const RunRequest& request) {
  if (Status status = validate(request.spec); !status.ok()) return status;
  if (Status status = check_tensors(request); !status.ok()) return status;
  return check_verifiable(request);
}

}  // namespace

bool stop_requested(const std::atomic<bool>* stop) noexcept { return stop != nullptr && stop->load(); }

Job::Job(const RunRequest& asked, TraceSink* trace)
    : request(asked),
      span(trace, TraceArea::runtime, asked.name.empty() ? std::string_view("job") : std::string_view(asked.name)),
      stop_(asked.stop) {
  report.name = request.name;
  report.op = operation(request.spec);
  report.flops = flops(request.spec);
  report.bytes = bytes_moved(request.spec);
  report.status = check(request);
}

Status check_tensors(const RunRequest& request) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  if (declared.size() != request.tensors.size()) {
    return invalid_argument(std::to_string(request.tensors.size()) + " tensors given, expected " +
                            std::to_string(declared.size()));
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const TensorArgument& given = request.tensors[i];
    const bool constant = declared[i].role == TensorRole::constant;
    const bool on_device = !constant && given.device != nullptr;  // of a pipeline
    if (constant ? given.constant == nullptr : !on_device && given.host == nullptr) {
      return invalid_argument("tensor " + declared[i].name + ": expected a " + (constant ? "Constant" : "host tensor"));
    }
    const std::size_t bytes = constant    ? given.constant->tensor().bytes().size()
                              : on_device ? static_cast<std::size_t>(given.device->bytes)
                                          : given.host->bytes().size();
    if (bytes != declared[i].bytes) {
      return invalid_argument("tensor " + declared[i].name + ": " + std::to_string(bytes) + " bytes, expected " +
                              std::to_string(declared[i].bytes));
    }
  }
  return check_expected(request, declared);
}

InoutSnapshot::InoutSnapshot(const RunRequest& request) : request_(request) {
  const std::vector<TensorDecl> declared = tensors_of(request.spec);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].role != TensorRole::inout) continue;
    const std::span<const std::byte> bytes = request.tensors[i].host->bytes();
    saved_.emplace_back(i, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
}

void InoutSnapshot::restore() const {
  for (const auto& [index, bytes] : saved_) {
    std::memcpy(request_.tensors[index].host->bytes().data(), bytes.data(), bytes.size());
  }
}

}  // namespace kiln
