// kiln_status, and guarded(), through which every function of kiln.h that can fail runs: no exception leaves the
// library.
//
// Thread-safety: values. Ownership: the caller of the C function frees the status; the one of out_of_memory() is
// static.
#pragma once

#include <kiln.h>

#include <kiln/status.hpp>

#include <string>
#include <utility>

struct kiln_status {
  kiln::Status status;
};

namespace kiln::c_interface {

// NULL for an ok status.
kiln_status* handed_over(Status status) noexcept;

template <class Work>
kiln_status* guarded(Work&& work) noexcept {
  try {
    Status status = work();
    return status.ok() ? nullptr : handed_over(std::move(status));
  } catch (...) {
    return handed_over(caught());
  }
}

// invalid_argument: "kiln_key_free: key is NULL".
Status null_argument(const char* function, const char* argument);

// invalid_argument: the struct is NULL or too small to have its first `least` bytes.
Status check_size(const char* function, const char* name, std::size_t size, std::size_t least);

// Copies a struct whose first member is `size`. Members that the caller's version lacks are zero; those that this
// version lacks must be zero in the caller's, so that nothing it asks for is ignored.
Status copy_struct(const char* function, const char* name, const void* from, void* to, std::size_t size);

// A copy for the caller, freed by kiln_text_free(). Throws std::bad_alloc.
char* copied_text(const std::string& text);

}  // namespace kiln::c_interface
