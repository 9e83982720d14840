# embed_page.cmake: the page of `rlx print --html` (src/inspect/page/) as one C file: what stands before, between and
# after the styles, the data and the scripts.
# cmake -DROOT=... -DOUT=... -P embed_page.cmake
set(text "/* Made by cmake/embed_page.cmake from src/inspect/page/. */\n#include \"inspect/page.h\"\n\n")
foreach(name html css model.js layout.js draw.js page.js)
    if(name MATCHES "\\.js$")
        set(file ${name})
    else()
        set(file page.${name})
    endif()
    file(READ ${ROOT}/${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REPLACE "." "_" id ${file})
    string(APPEND text "const unsigned char page_file_${id}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
