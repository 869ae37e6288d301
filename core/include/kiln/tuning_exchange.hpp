// TuningExchange: winners of other machines with the same device. They are used only after a sample was measured here.
//
// An optional ability of a TuningStore: query one for it with dynamic_cast. kiln/cache_sharing.hpp signs and moves the
// texts. TunableGenerator::tune() with TuneOptions::audit measures one foreign winner, for a spec without a winner,
// beside the variant that is used here. It becomes the winner if its result is right and it is not slower.
// Thread-safety: every method from any thread. Ownership: owned by the generator.
//
//   auto* exchange = dynamic_cast<kiln::TuningExchange*>(runtime.tuning());
//   if (exchange == nullptr) return kiln::unsupported("no exchange");
//   auto merged = exchange->merge_foreign(text, device.info());  // then measure some of exchange->foreign(device.info())
//   if (!merged) return merged.error();
//   auto used = exchange->accept_foreign(device.info());
#pragma once

#include <kiln/tuning.hpp>

namespace [[gnu::visibility("default")]] kiln {

class TuningExchange {
 public:
  TuningExchange() = default;
  TuningExchange(const TuningExchange&) = delete;
  TuningExchange& operator=(const TuningExchange&) = delete;
  virtual ~TuningExchange();

  // Returns the winners on the device as text for merge_foreign(). For specs that this machine has not tuned, the text
  // has the winners of other machines that this object received. Empty: there are none.
  virtual std::string winners_text(const DeviceInfo& device) noexcept = 0;
  // Stores the winners of the text for specs that have no winner here; `older` counts the others. They are not used yet.
  // corrupt: not a text of winners_text().
  virtual Result<MergedTuning> merge_foreign(std::string_view text, const DeviceInfo& device) noexcept = 0;
  // Returns the conv2d and gemm specs of the foreign winners, in a stable order.
  virtual std::vector<KernelSpec> foreign(const DeviceInfo& device) = 0;
  // True if the spec's only winner is a foreign one.
  virtual bool is_foreign(const KernelSpec& spec, const DeviceInfo& device) noexcept = 0;
  // Uses all foreign winners. Returns their number.
  virtual Result<std::size_t> accept_foreign(const DeviceInfo& device) noexcept = 0;
};

}  // namespace kiln
