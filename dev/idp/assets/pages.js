// Fills the form from a chosen account, and sends a sign-out that needs no question.
for (const account of document.querySelectorAll('.account')) {
  account.addEventListener('click', () => {
    document.getElementById('email').value = account.dataset.email;
    document.getElementById('password').value = account.dataset.password;
    document.querySelector('#sign-in [type=submit]').focus();
  });
}
document.querySelector('[data-submit-now]')?.click();
