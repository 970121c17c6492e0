// Shared by the scripts of all pages.

const offline = document.getElementById("offline");

export function setOffline(isOffline) {
  if (offline) offline.hidden = !isOffline;
}

// The form token. POST requests send it in the header "X-Form-Token".
export function formToken() {
  return document.querySelector('meta[name="form-token"]').content;
}

// Fetches a part of a page as text. If the request fails, throws an error with the message to show.
export async function fetchPart(address, options = {}) {
  const headers = { "X-Part": "1", ...(options.headers || {}) };
  let response;
  try {
    response = await fetch(address, { ...options, headers });
  } catch (error) {
    if (error.name !== "AbortError") setOffline(true);
    throw error;
  }
  setOffline(false);
  if (response.status === 401) {
    const next = location.pathname + location.search;
    location.assign("/login?next=" + encodeURIComponent(next));
    throw new DOMException("a login is needed", "AbortError");
  }
  const text = await response.text();
  if (!response.ok) throw Object.assign(new Error(response.statusText), { part: text });
  return text;
}
