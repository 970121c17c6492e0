// Asks for confirmation before a form with data-confirm is sent. Without scripts it is sent at
// once.

const dialog = document.createElement("dialog");
dialog.setAttribute("aria-labelledby", "confirm-question");
dialog.innerHTML = '<form method="dialog"><p id="confirm-question"></p><div class="row">' +
  '<button value="no" autofocus></button><button value="yes" class="danger"></button></div></form>';
const [no, yes] = dialog.querySelectorAll("button");
document.body.append(dialog);

let pending = null;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.confirm || event.defaultPrevented) return;
  event.preventDefault();
  pending = { form, button: event.submitter };
  dialog.querySelector("p").textContent = form.dataset.confirm;
  no.textContent = form.dataset.confirmNo || "Cancel";
  yes.textContent = event.submitter?.textContent.trim() || "OK";
  dialog.returnValue = "no";
  dialog.showModal();
});

dialog.addEventListener("close", () => {
  const asked = pending;
  pending = null;
  if (dialog.returnValue !== "yes" || !asked) return;
  delete asked.form.dataset.confirm;
  // The live table may have replaced the form meanwhile.
  if (asked.form.isConnected) asked.form.requestSubmit(asked.button);
  else document.body.append(asked.form), asked.form.submit();
});
