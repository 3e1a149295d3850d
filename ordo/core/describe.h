// describe: what a person would call an exception.
//
//   try { handle(event); } catch (...) { log_line(describe(std::current_exception())); }
//
// Threads: any.
#pragma once

#include <exception>
#include <string>

namespace ordo {

// The text of a std::exception or of a thrown string, or that it was neither. Never empty unless
// the exception's own text is.
std::string describe(const std::exception_ptr& error);

}  // namespace ordo
