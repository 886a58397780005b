// Tables whose rows are sorted by a click on a heading: those of a page that asks for it with
// <div class="sortable"></div> before them. Numbers sort as numbers; a second click reverses.
document.querySelectorAll(".sortable").forEach((mark) => {
  const table = mark.nextElementSibling?.querySelector("table");
  if (!table) return;
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const value = (row) => row.cells[column].textContent.trim();
      const compared = (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true });
      [...body.rows]
        .sort((a, b) => (down ? -compared(a, b) : compared(a, b)))
        .forEach((row) => body.append(row));
    });
  });
});
