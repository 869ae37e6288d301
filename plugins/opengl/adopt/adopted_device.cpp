#include "adopt/adopted_device.hpp"

#include "codec/program_codec.hpp"
#include "objects/source_text.hpp"

namespace kiln::opengl {
namespace {

class ProgramOfContext final : public Program {
 public:
  ProgramOfContext(std::shared_ptr<AdoptedContext> context, GLuint name, std::uint64_t charge)
      : context_(std::move(context)), name_(name), charge_(charge) {}
  ~ProgramOfContext() override { context_->drop(name_); }

  std::uint64_t charge() const noexcept override { return charge_; }
  GLuint name() const noexcept { return name_; }
  const AdoptedContext& context() const noexcept { return *context_; }

 private:
  const std::shared_ptr<AdoptedContext> context_;
  const GLuint name_;
  const std::uint64_t charge_;
};

Result<std::unique_ptr<Program>> finish(const std::shared_ptr<AdoptedContext>& context, Result<LinkedProgram> linked) {
  if (!linked) return linked.error();
  const std::uint64_t charge = linked->charge();
  return std::unique_ptr<Program>(std::make_unique<ProgramOfContext>(context, linked->release(), charge));
}

}  // namespace

AdoptedDevice::AdoptedDevice(std::shared_ptr<AdoptedContext> context, Facts facts)
    : context_(std::move(context)), info_(std::move(facts.info)), binary_formats_(std::move(facts.binary_formats)) {}

Result<std::unique_ptr<Buffer>> AdoptedDevice::create_buffer(const BufferDesc&) noexcept {
  return unsupported(info_.id + ": create_buffer: buffers are the application's");
}

Result<std::unique_ptr<Program>> AdoptedDevice::build(const KernelSource& source) noexcept {
  if (Status status = context_->enter(); !status.ok()) return status;
  const auto text = assemble(source);
  if (!text) return text.error().within(info_.id);
  auto& counter = info_.serializes ? counters_.builds : counters_.prepared;
  return finish(context_, build_program(context_->current(), source, *text, counter));
}

Result<std::unique_ptr<Program>> AdoptedDevice::load(const KernelSource& source, const ProgramBinary& binary) noexcept {
  if (Status status = context_->enter(); !status.ok()) return status;
  return finish(context_, load_program(context_->current(), source, binary, binary_formats_, counters_.loads));
}

Result<ProgramBinary> AdoptedDevice::serialize(const Program& program) noexcept {
  if (Status status = context_->enter(); !status.ok()) return status;
  if (!info_.serializes) return unsupported(info_.id + ": the driver has no program binary format");
  const auto& ours = static_cast<const ProgramOfContext&>(program);
  if (&ours.context() != context_.get()) return invalid_argument(info_.id + ": the program is of another context");
  return serialize_program(context_->current(), ours.name());
}

Result<std::uint64_t> AdoptedDevice::submit(const Dispatch&) noexcept {
  return unsupported(info_.id + ": submit: dispatching is the application's");
}

Result<FenceResult> AdoptedDevice::wait(std::uint64_t, Deadline) noexcept {
  return unsupported(info_.id + ": wait: dispatching is the application's");
}

GLuint AdoptedDevice::name_of(const Program& program) noexcept {
  return static_cast<const ProgramOfContext&>(program).name();
}

}  // namespace kiln::opengl
