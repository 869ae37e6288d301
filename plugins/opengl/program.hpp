// Programs of a device, and the codec that makes them in one of its contexts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kiln/measurement.hpp>
#include <kiln/program.hpp>

#include "codec/program_codec.hpp"
#include "codec/reflection.hpp"
#include "context_group.hpp"

namespace kiln::opengl {

// GlProgram: a linked compute program of one share group.
//
// Thread-safety: immutable but for what it says itself; the destructor may run on any thread and hands the deletion to
// the thread that dispatches. Ownership: keeps the share group, hence its threads, alive; it may outlive the Device
// object.
class GlProgram final : public Program {
 public:
  GlProgram(std::shared_ptr<ContextGroup> group, GLuint name, std::size_t bindings, std::vector<View> views,
            std::uint64_t charge, Reflection reflection)
      : group_(std::move(group)),
        name_(name),
        bindings_(bindings),
        views_(std::move(views)),
        charge_(charge),
        reflection_(std::move(reflection)) {}
  ~GlProgram() override;

  std::uint64_t charge() const noexcept override { return charge_; }
  const ProgramInterface* interface(const KernelSource&) const noexcept override { return &reflection_.interface; }
  const Reflection& reflection() const noexcept { return reflection_; }
  GLuint name() const noexcept { return name_; }
  std::size_t bindings() const noexcept { return bindings_; }
  View view(std::size_t binding) const noexcept { return views_.empty() ? View::storage : views_[binding]; }
  const ContextGroup& group() const noexcept { return *group_; }

 private:
  std::shared_ptr<ContextGroup> group_;
  GLuint name_;
  std::size_t bindings_;
  std::vector<View> views_;  // empty: all are storage
  std::uint64_t charge_;
  const Reflection reflection_;
};

// The codec of an opened device: what codec/program_codec makes in one of its contexts becomes a program of its share
// group, usable in the others.
//
// Thread-safety: each function runs on a context's thread of the group. Ownership: programs are the caller's.

Result<std::unique_ptr<Program>> build_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                               const std::string& text, std::atomic<std::uint64_t>& counter);

Result<std::unique_ptr<Program>> load_program(const std::shared_ptr<ContextGroup>& group, const KernelSource& source,
                                              const ProgramBinary& binary, const std::vector<GLenum>& formats,
                                              std::atomic<std::uint64_t>& counter);

Result<ProgramBinary> serialize_program(ContextGroup& group, const GlProgram& program);

}  // namespace kiln::opengl
