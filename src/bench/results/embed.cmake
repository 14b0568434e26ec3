# cmake -DOUTPUT=x.cpp "-DASSETS=name=path;…" -P embed.cmake: files as constants of namespace halftone::assets.
set(source "// Made by embed.cmake.\n#include \"bench/results/assets.h\"\n\nnamespace halftone::assets {\n")
foreach(asset IN LISTS ASSETS)
  string(REGEX MATCH "^([^=]+)=(.+)$" _ "${asset}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" text)
  string(FIND "${text}" ")~asset\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${CMAKE_MATCH_2} holds the mark that ends it in the generated source")
  endif()
  string(APPEND source "static constexpr char ${name}_data[] = R\"~asset(${text})~asset\";\n"
    "const std::string_view ${name}(${name}_data, sizeof(${name}_data) - 1);\n")
endforeach()
file(WRITE "${OUTPUT}" "${source}}  // namespace halftone::assets\n")
