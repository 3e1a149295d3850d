#include "ordo/runtime/threads.h"

#include <pthread.h>
#include <utility>

namespace ordo {

Thread::Thread(const std::string& name, std::function<void(std::stop_token)> body)
    : thread_([body = std::move(body)](const std::stop_token& stop) { body(stop); }) {
  constexpr std::size_t kNameMax = 15;  // The kernel's limit.
  pthread_setname_np(thread_.native_handle(), name.substr(0, kNameMax).c_str());
}

}  // namespace ordo
