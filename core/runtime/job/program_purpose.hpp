// purpose_of: what a spec's programs are for, in a few words that fit a line of a table.
//
// Thread-safety: pure function. Ownership: values. What is as usual (stride 1, no padding, …) is left out: the words
// are for people, and no identity.
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/program.hpp>

#include <string>

namespace kiln {

ProgramPurpose purpose_of(const KernelSpec& spec, std::string variant);

}  // namespace kiln
