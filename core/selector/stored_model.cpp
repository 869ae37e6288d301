#include "selector/model_store.hpp"

#include <kiln/selector_admin.hpp>

#include <cmath>

namespace kiln {
namespace {

LearnedArm shown(const selector::ArmKey& key, const selector::Arm& arm) {
  LearnedArm learned;
  learned.operation = key.operation;
  learned.device = key.device;
  learned.driver = key.driver;
  learned.shape = key.shape;
  learned.runs = arm.run.log_ns.count;
  if (learned.runs > 0) {
    learned.run_ns = std::exp(arm.run.log_ns.mean);
    learned.deviation = arm.run.log_ns.deviation(selector::RunAverage::guessed_deviation);
  }
  if (arm.log_transfer.count > 0) learned.transfer_ns = std::exp(arm.log_transfer.mean);
  learned.first_runs = arm.log_first.count;
  if (learned.first_runs > 0) learned.first_ns = std::exp(arm.log_first.mean);
  learned.looks = arm.looks;
  learned.alarms = arm.run.alarms;
  learned.used_us = arm.used;
  return learned;
}

}  // namespace

Result<SelectorModel> read_selector_model(const std::filesystem::path& cache_directory) {
  SelectorModel model;
  model.file = cache_directory / selector::model_file;
  auto stored = selector::read_model(model.file);
  if (!stored) return std::move(stored).error();
  model.exists = stored->exists;
  for (const auto& [key, arm] : stored->arms) model.arms.push_back(shown(key, arm));
  model.not_learned = std::move(stored->unfit);
  model.rejected = std::move(stored->rejected);
  return model;
}

Result<SelectorReset> reset_selector_model(const std::filesystem::path& cache_directory, const std::string& device) {
  SelectorReset reset;
  const std::filesystem::path file = cache_directory / selector::model_file;
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) return reset;
  const auto lock = selector::lock_model(cache_directory);
  if (!lock) return lock.error();
  auto stored = selector::read_model(file);
  // What cannot be read is gone with everything; where one device is to go, the rest has to be known.
  if (!stored && !device.empty()) return std::move(stored).error();
  selector::StoredModel left;
  if (stored) left = std::move(*stored);
  const std::size_t before = left.arms.size();
  std::erase_if(left.arms, [&](const auto& entry) { return device.empty() || entry.first.device == device; });
  reset.kept = left.arms.size();
  reset.removed = before - reset.kept;
  if (device.empty()) left.unfit.clear();
  if (Status status = selector::write_model(file, left.arms, left.unfit); !status.ok()) return status;
  return reset;
}

}  // namespace kiln
