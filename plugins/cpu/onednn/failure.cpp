#include "onednn/failure.hpp"

#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace kiln::cpu {
namespace {

Status failure_of(const dnnl::error& error) {
  const std::string words = std::string("oneDNN: ") + error.what();
  switch (error.status) {
    case dnnl_unimplemented:
      return unsupported(words);
    case dnnl_out_of_memory:
      return unavailable(words);
    case dnnl_invalid_arguments:
      return invalid_argument(words);
    default:
      return internal_error(words);
  }
}

}  // namespace

Status current_failure(std::string_view what) {
  try {
    throw;
  } catch (const dnnl::error& error) {
    return failure_of(error).within(what);
  } catch (const std::bad_alloc&) {
    return unavailable(std::string(what) + ": no memory");
  } catch (const std::exception& error) {
    return internal_error(std::string(what) + ": " + error.what());
  }
}

}  // namespace kiln::cpu
