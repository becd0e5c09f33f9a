// The images, which are the final targets of the Containerfile, and their names on this machine.

export const IMAGES = ['edge', 'session-svc', 'web', 'one', 'dev-idp'];

/** `localhost/vestibule-edge:dev`; IMAGE_TAG sets another tag. */
export const imageName = (name, tag = process.env.IMAGE_TAG || 'dev') => `localhost/vestibule-${name}:${tag}`;
