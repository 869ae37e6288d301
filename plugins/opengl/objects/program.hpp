// GlProgram: a linked compute program of one share group.
//
// Thread-safety: immutable; the destructor may run on any thread and hands the deletion to the thread that dispatches.
// Ownership: keeps the share group, hence its threads, alive; it may outlive the Device object.
#pragma once

#include "gl/context_group.hpp"

#include <kiln/program.hpp>

namespace kiln::opengl {

class GlProgram final : public Program {
 public:
  GlProgram(std::shared_ptr<ContextGroup> group, GLuint name, std::size_t bindings, std::vector<View> views,
            std::uint64_t charge)
      : group_(std::move(group)), name_(name), bindings_(bindings), views_(std::move(views)), charge_(charge) {}
  ~GlProgram() override;

  std::uint64_t charge() const noexcept override { return charge_; }
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
};

}  // namespace kiln::opengl
