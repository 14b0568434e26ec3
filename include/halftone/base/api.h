// HALFTONE_API: what the shared library exports. Everything else stays inside it (-fvisibility=hidden).
#pragma once

#define HALFTONE_API __attribute__((visibility("default")))
