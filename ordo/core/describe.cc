#include "ordo/core/describe.h"

namespace ordo {

std::string describe(const std::exception_ptr& error) {
  if (error == nullptr) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text != nullptr ? text : "a null pointer was thrown";
  } catch (...) {
    return "something was thrown that is not a std::exception";
  }
}

}  // namespace ordo
